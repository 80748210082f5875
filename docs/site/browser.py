#!/usr/bin/env python3
"""Looks at a built site with Debian's Chromium: no page is wider than a phone, the search finds, and pictures for people.

    browser.py SITE PICTURES     PICTURES: a directory for the screenshots of five pages, each at two widths

Nothing may come from the network: the browser is given no other host than the one that serves the site.
"""
import base64
import functools
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

PAGES = ("index", "do_you_need_a_lock", "recipes/exclusive_mutex", "coming_from/curator", "reference/grant")
SEARCHES = {"fencing token": "guarantees.html", "try_acquire_for": "reference/exclusive_mutex.html", "consul": "coming_from/consul.html"}
PHONE, DESK = 390, 1280
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
           "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
SEARCH = """new Promise(done => {
  const field = document.querySelector("[data-md-component=search-query]"), end = Date.now() + 60000;
  field.focus();
  let tries = 0;
  const look = () => {
    const found = [...document.querySelectorAll(".md-search-result__link")].map(link => link.href);
    if (found.length || Date.now() > end) return done(found);
    // The page may not have been ready for what was typed before, and takes no notice of the same words again.
    field.value = %s + " ".repeat(tries++ %% 2);
    field.dispatchEvent(new Event("input"));
    field.dispatchEvent(new Event("keyup"));
    setTimeout(look, 300 * tries);  // a slow machine needs longer, and each try begins anew
  };
  look();
})"""


class Browser:
    """Chromium, spoken to through a pair of pipes. Ends with the object."""

    def __init__(self, profile):
        if not shutil.which("chromium"):
            raise SystemExit("chromium is missing; run scripts/site --browser without --no-install")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        # Chromium reads from descriptor 3 and writes to descriptor 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", "chromium", *OPTIONS, f"--user-data-dir={profile}"],
            pass_fds=(to_read, to_write), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number, self.buffer, self.session = 0, b"", {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        self.call("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.write_end)  # without its pipe, it ends
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.read_end, 1 << 16)
            if not more:
                raise RuntimeError("chromium has ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters} | self.session
        os.write(self.write_end, json.dumps(request).encode() + b"\0")
        while True:
            message = self.receive()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def show(self, url, width, height=1600):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width == PHONE)
        self.call("Page.navigate", url=url)
        self.evaluate('new Promise(done => document.readyState === "complete" ? done() : addEventListener("load", done))')

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return result["result"].get("value")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def problems_of(browser, address, pages, pictures):
    for page in pages:
        browser.show(f"{address}/{page}", PHONE)
        width = browser.evaluate("document.documentElement.scrollWidth")
        if width > PHONE:
            yield f"{page} is {width} wide on a phone of {PHONE}"
    for words, page in SEARCHES.items():
        browser.show(f"{address}/index.html", DESK)
        found = browser.evaluate(SEARCH % json.dumps(words)) or []
        if not any(page in link for link in found):
            yield f"the search for '{words}' does not find {page}, but {' '.join(found[:5]) or 'nothing'}"
    for page in PAGES:
        for width in (DESK, PHONE):
            browser.show(f"{address}/{page}.html", width)
            picture = browser.call("Page.captureScreenshot", format="png")["data"]
            (pictures / f"{page.replace('/', '_')}_{width}.png").write_bytes(base64.b64decode(picture))


def main():
    site, pictures = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    pictures.mkdir(parents=True, exist_ok=True)
    pages = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, Browser(profile) as browser:
        problems = list(problems_of(browser, f"http://127.0.0.1:{server.server_address[1]}", pages, pictures))
    print("\n".join(problems) if problems else
          f"{len(pages)} pages fit a phone, the search finds; screenshots of five pages are in {pictures}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
