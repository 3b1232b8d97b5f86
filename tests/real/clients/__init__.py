"""The clients, each in a file of its own."""
import importlib, os, pkgutil


class Client:
    """A client: how it is started without a terminal, and how the model calls its tools."""
    name = ""  # piton's
    program = ""  # on PATH
    package = ""  # of npm, or `pip: …`
    dialect = ""  # a module of model/
    destroy = "rm -rf out"
    resumes = False  # `command` can go on with the last session
    tells_parent = False  # it tells piton which session or agent a sub-agent belongs to
    without_hooks = []  # arguments with which it runs no hooks
    switches = []  # each with a title and a function of the box that turns the client's hooks off
    path = None  # of the program that was found

    def environment(self, box):
        """Returns the variables that lead the client to the model at `box.model.port`."""
        return {}

    def prepare(self, box):
        """Writes the client's settings into the home."""

    def installed(self, box):
        """Does what a person does after the installation, for example to trust the hooks."""

    def command(self, box, prompt, resume):
        """Returns the arguments that let the client work on one prompt, with all tools allowed."""
        raise NotImplementedError

    def shell(self, command):
        """Returns the name and the arguments of a call of the shell tool."""
        raise NotImplementedError

    def agent(self, prompt):
        """Returns such a call that starts a sub-agent with a prompt, or None."""
        return None

    def isolated(self, prompt):
        """Returns such a call whose sub-agent works in a worktree of its own, or None."""
        return None

    def denying(self, box, prompt):
        """Returns the arguments with which the client denies the calls of its shell tool after the hook before them, or None."""
        return None

    def terminal(self, box, prompt):
        """Prepares the client for a terminal. Returns the arguments with which it begins with a prompt there, where a line that begins with
        `!` is a command of the person; or None."""
        return None

    def end(self, box):
        """Ends what the client left running."""


def all():
    """Returns all clients by their names."""
    found = {}
    for module in pkgutil.iter_modules([os.path.dirname(__file__)]):
        client = importlib.import_module(f"clients.{module.name}").CLIENT
        found[client.name] = client
    return found
