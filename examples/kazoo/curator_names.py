"""kazoo locks under Curator's node names: the same locks as those of zkrecipes (its default dialect) and of Curator.

kazoo's own Lock, ReadLock and WriteLock write other names, and neither see Curator's nodes nor are seen; kazoo's
extra_lock_patterns works in one direction only. These classes are used in the same way:

    client = KazooClient(hosts="zk1:2181")
    client.start()
    with CuratorLock(client, "/locks/orders/42", "who I am"):
        ...

Written for kazoo 2.8 and tested with it. It overrides private methods of kazoo's Lock: test again before another
version is used.
"""
import uuid

from kazoo.exceptions import NoNodeError
from kazoo.recipe.lock import Lock
from kazoo.retry import ForceRetryError


class _CuratorNames(Lock):
    def __init__(self, client, path, identifier=None):
        super().__init__(client, path, identifier)
        self._new_name()

    def _new_name(self):
        # A name for each attempt: kazoo keeps one for each object, and after the end of a session would take a node of
        # the former session for its own.
        self.prefix = "_c_%s-%s" % (uuid.uuid4(), self._NODE_NAME)
        self.create_path = self.path + "/" + self.prefix
        self.create_tried = False

    def _inner_release(self):
        released = super()._inner_release()
        if released:
            self._new_name()
        return released

    def _best_effort_cleanup(self):
        super()._best_effort_cleanup()
        self.node = None
        self._new_name()

    def _ensure_path(self):
        # Containers, as Curator and zkrecipes make them, are removed by the servers when they have been empty for a
        # while, so the path is ensured each time.
        self.client.ensure_path(self.path)

    def _get_predecessor(self, node):
        # kazoo 2.8's ReadLock waits for later writers, too, since its own node is not among those that it compares.
        try:
            children = self.client.get_children(self.path)
        except NoNodeError:
            raise ForceRetryError() from None
        if node not in children:
            raise ForceRetryError()
        earlier = [match for match in map(self._contenders_re.search, children) if match and match[1] < node[-10:]]
        return max(earlier, key=lambda match: match[1]).string if earlier else None


class CuratorLock(_CuratorNames):
    """The lock of Curator's InterProcessMutex and of zkrecipes' ExclusiveMutex."""

    _NODE_NAME = "lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class CuratorReadLock(_CuratorNames):
    """A share of Curator's InterProcessReadWriteLock and of zkrecipes' ReadWriteLock."""

    _NODE_NAME = "__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


class CuratorWriteLock(_CuratorNames):
    """The other side of the same lock: held alone."""

    _NODE_NAME = "__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]
