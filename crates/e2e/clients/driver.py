"""What the Python drivers share: one command line, an environment without surprises, one line of JSON at the end, and on
standard error one line for each HTTP reply that the client was given. The clients are as their registry has them; they are
watched, not changed."""

import argparse
import asyncio
import base64
import functools
import hashlib
import inspect
import json
import os
import sys
import tempfile
import urllib.parse

# Whatever this machine trusts, and through whom it goes out, is no matter of a test on loopback.
OVERRULED = ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"]
PROXIES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
# So much of a reply is shown.
SHOWN_MAX = 300

# A picture as far as a client looks at it, one for each mark.
PICTURE_HEAD = b"GIF89a\x40\0\x20\0\x80\0\0\0\0\0\xff\xff\xff\x2c\0\0\0\0\x40\0\x20\0\0\x02"
PICTURE_TAIL = b"\0\x3b"

AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"


class Order:
    """What is to be solved. Everything in it follows from the mark, so that the same mark is the same order."""

    def __init__(self, words):
        self.base = words.base.rstrip("/")
        self.host = urllib.parse.urlsplit(words.base).netloc
        self.is_tls = words.base.startswith("https:")
        self.key = words.key
        self.what = words.what
        self.how = words.how
        self.report = words.report
        digest = hashlib.sha256(words.mark.encode()).hexdigest()
        self.page = f"https://{words.mark}.example.com/login"
        self.site_key = f"6Le-{words.mark}-0123456789abcdefghijklmnop"
        self.gt = digest[:32]
        self.challenge = digest[32:]
        self.proxy_host, self.proxy_port = "127.0.0.1", 3128
        self.proxy_login, self.proxy_password = "user", "secret"
        self.proxy = f"{self.proxy_login}:{self.proxy_password}@{self.proxy_host}:{self.proxy_port}"
        self.proxy_type = "HTTP"
        self.agent = AGENT
        self.question = f"What stands in {words.mark}?"
        self.image = PICTURE_HEAD + bytes.fromhex(digest) * 40 + PICTURE_TAIL
        self.image_text = base64.b64encode(self.image).decode()

    def image_path(self):
        """The picture as a file, for clients that want one."""
        file = tempfile.NamedTemporaryFile(suffix=".gif")
        file.write(self.image)
        file.flush()
        # It is there for as long as this object is.
        self.image_file = file
        return file.name


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True, help="where the gateway is: http://127.0.0.1:8780")
    parser.add_argument("--key", required=True)
    parser.add_argument("--what", required=True, help="image, recaptcha_v2, turnstile, balance, ...")
    parser.add_argument("--mark", default="mark", help="names the order; the same mark is the same order")
    parser.add_argument("--how", default="sync", choices=["sync", "async", "extended"])
    parser.add_argument("--report", choices=["good", "bad"], help="what to say of the answer afterwards")
    parser.add_argument("--ca", help="the certificate to trust, and no other")
    return parser.parse_args()


def prepare():
    """The order, in an environment that the client cannot be misled by. To be called before a client is imported."""
    words = arguments()
    # Whatever a client prints is not the one line.
    sys.stdout = sys.stderr
    for name in OVERRULED + PROXIES + [name.lower() for name in PROXIES]:
        os.environ.pop(name, None)
    os.environ["NO_PROXY"] = "*"
    if words.ca:
        os.environ["REQUESTS_CA_BUNDLE"] = words.ca
        os.environ["SSL_CERT_FILE"] = words.ca
    return Order(words)


def tell(url, status, body):
    line = {"path": urllib.parse.urlsplit(str(url)).path, "status": status, "body": body[:SHOWN_MAX]}
    print(json.dumps(line), file=sys.stderr, flush=True)


def watch_requests():
    import requests

    send = requests.Session.send

    @functools.wraps(send)
    def watched(self, request, **more):
        response = send(self, request, **more)
        tell(request.url, response.status_code, response.text)
        return response

    requests.Session.send = watched


def watch_httpx():
    import httpx

    send, send_async = httpx.Client.send, httpx.AsyncClient.send

    @functools.wraps(send)
    def watched(self, request, **more):
        response = send(self, request, **more)
        tell(request.url, response.status_code, response.text)
        return response

    @functools.wraps(send_async)
    async def watched_async(self, request, **more):
        response = await send_async(self, request, **more)
        tell(request.url, response.status_code, response.text)
        return response

    httpx.Client.send, httpx.AsyncClient.send = watched, watched_async


def watch_aiohttp():
    import aiohttp

    request = aiohttp.ClientSession._request

    @functools.wraps(request)
    async def watched(self, method, url, **more):
        response = await request(self, method, url, **more)
        tell(url, response.status, await response.text())
        return response

    aiohttp.ClientSession._request = watched


def as_text(answer):
    return answer if isinstance(answer, str) else json.dumps(answer)


def run(solve, order):
    """Solves, and says how it went. `solve` gives the answer, or the answer and the id."""
    try:
        found = solve(order)
        if inspect.isawaitable(found):

            async def waited():
                return await found

            found = asyncio.run(waited())
        answer, number = found if isinstance(found, tuple) else (found, None)
        line = {"ok": True, "answer": as_text(answer)}
        if number is not None:
            line["id"] = str(number)
    # Whatever a client throws is what a user of it sees.
    except Exception as error:
        line = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(line), file=sys.__stdout__, flush=True)


async def settled(value):
    """What a call of either variant of a client gives."""
    return await value if inspect.isawaitable(value) else value


class NotOffered(Exception):
    """The client has no call for this."""

    def __init__(self, order):
        super().__init__(f"this client cannot do {order.what}, {order.how}")
