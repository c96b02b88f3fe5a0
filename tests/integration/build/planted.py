"""Tries to get out of a build. Whatever gets out is a line on standard error, and an error.

Arguments: what to try (requests, or the rest), a TCP port, a UDP port, an IPv6 port, a unix socket, a file to change, a file
to make, a file to read, a directory that is an input.
"""
import ctypes, os, socket, sys, time

what, tcp, udp, ipv6, unix, existing, new, login, given = sys.argv[1:]
out = []
libc = ctypes.CDLL(None, use_errno=True)


def attempt(name, action):
    try:
        if action() is not False:
            out.append(name)
    except OSError:
        pass


def connect(family, address, protocol=0):
    with socket.socket(family, socket.SOCK_STREAM, protocol) as tried:
        tried.settimeout(5)
        tried.connect(address)


def send(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.sendto(b"x", address)


def fast_open():
    with socket.socket() as tried:
        tried.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", int(tcp)))


def listen():
    with socket.socket() as tried:
        tried.listen()


def write(file):
    with open(file, "a") as tried:
        tried.write("x")


def read(file):
    with open(file) as tried:
        tried.read()


def remount():
    flags = 0x20 | 0x1000
    return libc.mount(None, given.encode(), None, flags, None) == 0 and write(os.path.join(given, "new"))


def leave_daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3):
                os.close(number)
            time.sleep(60)
            os._exit(0)
        os._exit(0)
    os.wait()
    return False


if what == "requests":
    attempt("tcp", lambda: connect(socket.AF_INET, ("127.0.0.1", int(tcp))))
    attempt("address", lambda: connect(socket.AF_INET, ("192.0.2.1", int(os.environ["HTTP_PROXY"].rsplit(":", 1)[1]))))
    attempt("ipv6", lambda: connect(socket.AF_INET6, ("::1", int(ipv6))))
    attempt("mptcp", lambda: connect(socket.AF_INET, ("127.0.0.1", int(tcp)), 262))
    attempt("fast open", fast_open)
    attempt("udp", lambda: send(("127.0.0.1", int(udp))))
    attempt("dns", lambda: socket.getaddrinfo("example.com", 443))
    attempt("unix", lambda: connect(socket.AF_UNIX, unix))
else:
    attempt("listen", listen)
    attempt("write", lambda: write(existing))
    attempt("create", lambda: write(new))
    attempt("read", lambda: read(login))
    attempt("remount", remount)
    attempt("unshare", lambda: libc.unshare(0x10000000) == 0)
    attempt("daemon", leave_daemon)
if out:
    sys.exit("got out: " + ", ".join(out))
