"""Runs a program under what Docker's default profile for seccomp denies without CAP_SYS_ADMIN (x86-64 and aarch64).

With the word `unseen` before it filters cannot be watched, either; with `nothing` there are no filters and no Landlock.
"""
import ctypes, os, platform, struct, sys

X86 = platform.machine() == "x86_64"
ARCHITECTURE = 0xC000003E if X86 else 0xC00000B7
# unshare, setns, mount, umount2, pivot_root; then those with one number everywhere: open_tree, move_mount, fsopen, pidfd_getfd,
# mount_setattr.
DENIED = ([272, 308, 165, 166, 155] if X86 else [97, 268, 40, 39, 41]) + [428, 429, 430, 438, 442]
SECCOMP = 317 if X86 else 277
WORD = sys.argv.pop(1) if sys.argv[1] in ("unseen", "nothing") else ""
DENIED += [SECCOMP, 444] if WORD == "nothing" else []
CLONE = 56 if X86 else 220
ALLOW, EPERM, EBUSY, ENOSYS = 0x7FFF0000, 0x50001, 0x50010, 0x50026
LOAD, EQUAL, HAS, END = 0x20, 0x15, 0x45, 0x06

steps = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCHITECTURE), (END, 0, 0, ALLOW), (LOAD, 0, 0, 0)]
for number in DENIED:
    steps += [(EQUAL, 0, 1, number), (END, 0, 0, EPERM)]
steps += [(EQUAL, 0, 1, 435), (END, 0, 0, ENOSYS)]
steps += [(EQUAL, 0, 4, CLONE), (LOAD, 0, 0, 16), (HAS, 0, 1, 0x7E020000), (END, 0, 0, EPERM), (END, 0, 0, ALLOW)]
if WORD == "unseen":
    steps += [(LOAD, 0, 0, 0), (EQUAL, 0, 4, SECCOMP), (LOAD, 0, 0, 24), (HAS, 0, 1, 8), (END, 0, 0, EBUSY), (END, 0, 0, ALLOW)]
steps += [(END, 0, 0, ALLOW)]
code = b"".join(struct.pack("HBBI", *step) for step in steps)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Program(len(steps), code)), 0, 0):
    sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
