"""A store like S3 on this machine: what a bucket needs for reading, and a log of what was asked of it."""

import hashlib
import http.server
import re
import threading


class Store:
    """Objects by their names, ``bucket/key``; served under ``endpoint``."""

    def __init__(self):
        self.objects, self.asked, self.tagged = {}, [], True
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                store._answer(self, True)

            def do_HEAD(self):
                store._answer(self, False)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def _answer(self, request, with_body):
        name = request.path.lstrip("/")
        wanted = request.headers.get("Range")
        self.asked.append((request.command, name, wanted))
        whole = self.objects.get(name)
        if whole is None:
            request.send_response(404)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        body, status = whole, 200
        if wanted is not None:
            first, last = (int(number) for number in re.fullmatch(r"bytes=(\d+)-(\d+)", wanted).groups())
            body, status = whole[first:last + 1], 206
        request.send_response(status)
        if status == 206:
            request.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{len(whole)}")
        if self.tagged:
            request.send_header("ETag", f'"{hashlib.md5(whole).hexdigest()}"')
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if with_body:
            request.wfile.write(body)
