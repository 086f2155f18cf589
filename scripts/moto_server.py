"""Runs a command beside an S3 emulator that lives in this process. Called by scripts/moto."""

import io
import logging
import os
import signal
import subprocess
import sys
import threading

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

BUCKET = "sealog-test"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "sealog",
    "AWS_SECRET_ACCESS_KEY": "sealog-secret",
    "AWS_REGION": "us-east-1",
}


def main(command):
    # Port 0 lets the system choose a free one, and the socket listens once the server is made:
    # nobody can take the port in between, and there is nothing to wait for.
    server = make_server(
        "127.0.0.1",
        0,
        OneAtATime(DomainDispatcherApplication(create_backend_app)),
        threaded=True,
        request_handler=Handler,
    )
    # One line per request would bury what the command prints; errors still show.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    endpoint = f"http://127.0.0.1:{server.port}"
    create_bucket(endpoint)
    return run(command, environment(endpoint))


class OneAtATime:
    """Serves requests one after the other.

    moto looks whether a key exists, and writes it, in two steps. Over its threads two conditional
    creates of one key could both succeed, which real S3 never allows, and which would make every
    test of exclusive creation meaningless.
    """

    def __init__(self, app):
        self.app = app
        self.lock = threading.Lock()

    def __call__(self, environ, start_response):
        # The body is read before the lock is taken, so that a client that sends slowly, or
        # never ends, keeps nobody waiting.
        body = environ["wsgi.input"]
        if environ.get("wsgi.input_terminated"):
            received = body.read()
        else:
            length = int(environ.get("CONTENT_LENGTH") or 0)
            received = body.read(length)
            if len(received) < length:
                # The client went away in the middle: S3 stores nothing, moto would.
                start_response("400 Bad Request", [("Content-Length", "0")])
                return [b""]
        environ["wsgi.input"] = io.BytesIO(received)
        with self.lock:
            response = self.app(environ, start_response)
            try:
                return list(response)
            finally:
                if hasattr(response, "close"):
                    response.close()


class Handler(MotoRequestHandler):
    # An answer leaves in two writes; with Nagle's algorithm each would wait for the client's
    # delayed acknowledgement.
    disable_nagle_algorithm = True


def create_bucket(endpoint):
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        region_name=CREDENTIALS["AWS_REGION"],
        config=Config(connect_timeout=10, read_timeout=30, proxies={}),
    )
    client.create_bucket(Bucket=BUCKET)


def environment(endpoint):
    # Whatever real credentials and settings the caller has must not reach the command: tests
    # write and delete.
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env.update(CREDENTIALS)
    env.update(
        AWS_ENDPOINT=endpoint,
        AWS_ALLOW_HTTP="true",
        SEALOG_TEST_S3_ENDPOINT=endpoint,
        SEALOG_REQUIRE_S3="1",
    )
    for name in ("NO_PROXY", "no_proxy"):
        env[name] = ",".join(filter(None, [env.get(name), "127.0.0.1"]))
    return env


def run(command, env):
    child = None

    def pass_on(signum, _frame):
        if child is not None:
            child.send_signal(signum)

    # An interrupt from a terminal reaches the command by itself; this process only has to
    # outlive it. A request to terminate reaches just this process, and is passed on.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGHUP, pass_on)
    try:
        child = subprocess.Popen(command, env=env)
    except OSError as error:
        print(f"scripts/moto: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    code = child.wait()
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
