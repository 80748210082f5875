"""A path to a server on which each message takes longer, as through a network. servers.py begins it.

    far.py HOST PORT SERVER_HOST SERVER_PORT MILLISECONDS    so long in each direction
    far.py --self-test
"""
import queue
import socket
import sys
import threading
import time


def deliver(waiting, target):
    try:
        while True:
            due, data = waiting.get()
            time.sleep(max(0, due - time.monotonic()))
            if not data:
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other end is gone; its own direction tells that to the source


def carry(source, target, seconds):
    """All that comes from the source, in its order, each part so many seconds later."""
    waiting = queue.SimpleQueue()
    threading.Thread(target=deliver, args=(waiting, target), daemon=True).start()
    data = b"."
    while data:
        try:
            data = source.recv(1 << 16)
        except OSError:
            data = b""
        waiting.put((time.monotonic() + seconds, data))


def serve(listener, server, seconds):
    while True:
        near, _ = listener.accept()
        far = socket.create_connection(server)
        for source, target in ((near, far), (far, near)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=carry, args=(source, target, seconds), daemon=True).start()


def self_test():
    """What is sent arrives whole and in order, late in both directions; the end arrives too."""
    seconds, echo, listener = 0.02, socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))

    def answer():
        connection, _ = echo.accept()
        while data := connection.recv(1 << 16):
            connection.sendall(data)
        connection.close()

    for target, arguments in ((answer, ()), (serve, (listener, echo.getsockname(), seconds))):
        threading.Thread(target=target, args=arguments, daemon=True).start()
    client = socket.create_connection(listener.getsockname())
    failures = []
    for message in (b"a", bytes(range(256)) * 1000):
        begin, found = time.monotonic(), b""
        threading.Thread(target=client.sendall, args=(message,), daemon=True).start()
        while len(found) < len(message) and (part := client.recv(1 << 16)):
            found += part
        if found != message:
            failures.append(f"{len(message)} bytes changed")
        if time.monotonic() - begin < 2 * seconds:
            failures.append(f"{len(message)} bytes came too early")
    client.shutdown(socket.SHUT_WR)
    if client.recv(1):
        failures.append("more came than was sent")
    print("\n".join([*failures, f"{len(failures)} failures"]))
    return 1 if failures else 0


def main():
    host, port, server_host, server_port, milliseconds = sys.argv[1:]
    serve(socket.create_server((host, int(port))), (server_host, int(server_port)), float(milliseconds) / 1000)


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else main())
