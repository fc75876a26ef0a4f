"""An endpoint for tests: it keeps what it was asked, and answers what `answer` says."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body, self.headers.get("Authorization")))
        status, reply = self.server.answer(len(self.server.asked), body)
        data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextmanager
def serving():
    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.asked, found.answer = [], lambda number, body: said("1")
    found.url = f"http://127.0.0.1:{found.server_port}/v1"
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def said(text, **more):
    return 200, {"model": "m-1", "choices": [{"message": {"content": text}}], **more}
