"""A plugin of pytest that proves a session came to its own end with every test passed.

It is loaded by pytest inside the sandbox, alone and without the suite. A process that ends early, whatever its status,
has no proof; a program that looks for the proof in this module finds it.
"""

import os


def proving(go, report):
    proof = os.read(go, 16)
    os.close(go)
    write = os.write

    def pytest_sessionfinish(session, exitstatus):
        if exitstatus == 0 and session.testscollected > 0 and session.testsfailed == 0:
            write(report, proof + b"[]")

    return pytest_sessionfinish


if "CODERET_PROOF" in os.environ:
    pytest_sessionfinish = proving(*map(int, os.environ.pop("CODERET_PROOF").split(",")))
