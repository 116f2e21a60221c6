"""A name node and a data node of HDFS on this machine, as far as WebHDFS shows them to those who read."""

import http.server
import json
import threading
import urllib.parse


class Hdfs:
    """Files by their paths, served under ``name``: ``host:port`` of the name node, which sends readers on to the data node."""

    def __init__(self):
        self.files, self.changed, self.asked, self.busy = {}, {}, [], 0
        self.nodes = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(self, answer))
                      for answer in (self._name_node, self._data_node)]
        for node in self.nodes:
            node.daemon_threads = True
            threading.Thread(target=node.serve_forever, daemon=True).start()
        self.name, self._data = (f"127.0.0.1:{node.server_address[1]}" for node in self.nodes)

    def put(self, path, whole):
        self.files[path] = whole
        self.changed[path] = self.changed.get(path, 1_700_000_000_000) + 1

    def close(self):
        for node in self.nodes:
            node.shutdown()
            node.server_close()

    def _name_node(self, path, query):
        self.asked.append((path, query))
        if self.busy:
            self.busy -= 1
            return 503, b"starting", {}
        if path in self.files:
            if query["op"] == "OPEN":
                return 307, b"", {"Location": f"http://{self._data}/webhdfs/v1{urllib.parse.quote(path)}?{urllib.parse.urlencode(query)}"}
            kind, length, time = "FILE", len(self.files[path]), self.changed[path]
        elif any(file.startswith(path.rstrip("/") + "/") for file in self.files):
            kind, length, time = "DIRECTORY", 0, 0
        else:
            return 404, exception("FileNotFoundException", f"File does not exist: {path}"), {}
        return 200, json.dumps({"FileStatus": {"length": length, "modificationTime": time, "type": kind, "owner": "us"}}).encode(), {}

    def _data_node(self, path, query):
        if path not in self.files:
            return 404, exception("FileNotFoundException", f"File does not exist: {path}"), {}
        start = int(query["offset"])
        return 200, self.files[path][start:start + int(query["length"])], {}


def exception(name, message):
    return json.dumps({"RemoteException": {"exception": name, "javaClassName": f"java.io.{name}", "message": message}}).encode()


def handler(hdfs, answer):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            url = urllib.parse.urlsplit(self.path)
            path = urllib.parse.unquote(url.path)
            assert path.startswith("/webhdfs/v1/")
            status, body, headers = answer(path.removeprefix("/webhdfs/v1"), dict(urllib.parse.parse_qsl(url.query)))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler
