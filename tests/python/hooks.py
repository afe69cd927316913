"""Bodies that schemathesis cannot make by itself: archives to deploy."""

import gzip
import io
import tarfile

import schemathesis
from hypothesis import strategies as st


def archive(files):
    """A gzip stream of a tar file of names and contents."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(packed.getvalue())


NAMES = st.sampled_from(["main.js", "a/b.css", "../x", "/etc/x", "__platform/x", "index.html"])
FILES = st.lists(st.tuples(NAMES, st.binary(max_size=64)), max_size=4)
GOOD = st.binary(max_size=64).map(lambda page: archive([("index.html", page)]))
ODD = FILES.map(lambda files: archive([("index.html", b"page"), *files]))
CUT = st.tuples(GOOD, st.integers(1, 40)).map(lambda cut: cut[0][: -cut[1]])

schemathesis.openapi.media_type(
    "application/gzip", st.one_of(GOOD, ODD, CUT, st.binary(max_size=200))
)
