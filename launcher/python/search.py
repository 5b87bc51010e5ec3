# The first lines of every program that answers a question: they let it find the
# packages that a rank would find. -I has left the folders of PYTHONPATH and the
# user's own packages out, and with them every module that the interpreter would
# import by itself before it reads a line of this.
def _search(given):
    import os
    import site
    import sys

    def put(folders):  # after the standard library, before other packages
        at = next((i for i, folder in enumerate(sys.path)
                   if os.path.basename(folder).endswith("-packages")),
                  len(sys.path))
        sys.path[at:at] = folders

    def safe(folder):
        try:
            info = os.stat(folder)
        except OSError:
            return False
        return (info.st_uid in (0, os.geteuid())
                and not info.st_mode & 0o002)

    # A virtual environment without the system's packages has none of the
    # user's either.
    if given["user"] and (sys.prefix == sys.base_prefix
                          or sys.base_prefix in site.PREFIXES):
        if given["base"]:
            os.environ["PYTHONUSERBASE"] = given["base"]
        own = site.getusersitepackages()
        os.environ.pop("PYTHONUSERBASE", None)
        if os.path.isabs(own) and safe(own) and own not in sys.path:
            before = len(sys.path)
            site.addsitedir(own)
            added = sys.path[before:]
            del sys.path[before:]
            put(added)
    put(given["path"])


if __name__ == "__main__":
    import json
    import sys
    _search(json.loads(sys.argv.pop(1)))
