"""Claude Code transcripts: sessions, sub-agents, background agents, teams, workflows."""
