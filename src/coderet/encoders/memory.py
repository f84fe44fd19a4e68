"""Where big tensors lie: memory that was freed is kept for the next tensor instead of given back to the system.

glibc takes every block over some megabytes from the kernel and gives it back when it is freed, so each new tensor is
paid for page by page. A step of training makes and frees hundreds of them. Adding two tensors of 50 MB took 32 ms so,
30 of them in the kernel, and takes 3.6 ms from memory that is kept (one thread, in a virtual machine).
"""

import ctypes

MMAP_MAX, TRIM_THRESHOLD = -4, -1  # names of <malloc.h>
NEVER = 2**31 - 1


def keep_freed() -> bool:
    """Let this process keep what it frees from now on; False where the C library has no such setting (not glibc).

    Its memory then stays at the highest it ever needed. Ask before the first big tensor is made.
    """
    try:
        setting = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(setting(MMAP_MAX, 0) and setting(TRIM_THRESHOLD, NEVER))
