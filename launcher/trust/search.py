# The first lines of every program that answers a question: they let it find
# the packages that a rank would find. -I leaves out PYTHONPATH and the user's
# own packages, and with them every module there that an interpreter imports
# before it reads its program.
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

    # A virtual environment without the system's packages also leaves out the
    # user's.
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
