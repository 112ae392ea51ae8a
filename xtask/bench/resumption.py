"""What a TLS 1.3 connection with one request costs each proxy, resumed and with a full handshake: CPU us of
its process tree, medians of three runs. Runs in the folder of the peer bench, whose proxies and clock it uses."""
import os
import socket
import ssl
import statistics
import sys

import bench

CONNECTIONS, WARM, RUNS = 1500, 50, 3
REQUEST = b"GET /p0/1k HTTP/1.1\r\nHost: h0.example.test\r\nConnection: close\r\n\r\n"


def context():
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
    found.minimum_version = ssl.TLSVersion.TLSv1_3
    return found


def ask(client, session):
    """One connection; whether it was resumed, and the session for the next one."""
    with socket.create_connection(("127.0.0.1", bench.PORTS["TLS_PORT"])) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client.wrap_socket(plain, server_hostname="h0.example.test", session=session) as tls:
            tls.sendall(REQUEST)
            answer = b""
            while True:
                try:
                    more = tls.recv(65536)
                except (ssl.SSLError, ConnectionResetError):
                    break    # some end without saying so
                if not more:
                    break
                answer += more
            assert answer.startswith(b"HTTP/1.1 200"), answer[:80]
            return tls.session_reused, tls.session


def measure(name, resumes):
    """CPU us of a connection, and the share that was resumed."""
    with bench.Proxy(name) as proxy:
        client, session, resumed = context(), None, 0
        for number in range(WARM + CONNECTIONS):
            if number == WARM:
                before, resumed = bench.cpu_seconds(proxy.pid), 0
            reused, new = ask(client, session if resumes else None)
            resumed, session = resumed + bool(reused), new or session
        spent = bench.cpu_seconds(proxy.pid) - before
        return spent / CONNECTIONS * 1e6, resumed / CONNECTIONS


def main():
    os.sched_setaffinity(0, {int(bench.LOAD_CPU)})
    names = [name for name in sys.argv[1].split(",") if bench.Proxy(name).available()]
    found = {}
    with bench.Backend():
        for _ in range(RUNS):
            for name in names:
                for resumes in (True, False):
                    found.setdefault((name, resumes), []).append(measure(name, resumes))
    for name in names:
        cost = [statistics.median(one[0] for one in found[name, resumes]) for resumes in (True, False)]
        share = min(one[1] for one in found[name, True])
        print(f"{name:<20} resumed {cost[0]:6.0f} us ({share:.0%} were), full handshake {cost[1]:6.0f} us")


if __name__ == "__main__":
    main()
