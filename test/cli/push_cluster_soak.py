#!/usr/bin/env python3
# soak: only
# timeout: 900
"""Ten million rows over two servers, one of which is killed in the middle (push_cluster)."""
import os
import sys

SCRIPT = os.path.join(os.environ["TIDEMARK_SOURCE"], "test/cli/push_cluster.py")
os.execve(sys.executable, [sys.executable, SCRIPT], {**os.environ, "PUSH_CLUSTER_EVENTS": "20000000"})
