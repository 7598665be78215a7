"""The command `odradek`.

`odradek serve` runs a broker until SIGTERM or SIGINT, stops it in an orderly way and exits with status 0; a second
signal ends it at once. A broker that cannot start prints one line on stderr and exits with status 1.

Modules are imported where they are used: `odradek --help` loads neither an event loop nor a broker.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

import odradek
from odradek.broker.tools.command.help_format import HelpFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.config.config_sources import Settings
    from odradek.broker.faults.fault_setup import FaultSetup

EXIT_USAGE: Final = 2

_TOOLS: Final = {
    "dump-log": ("dump_log.dump_log", "print the files of a log as kafka-dump-log does"),
    "verify": ("verify", "check log directories and print what is wrong with them"),
    "produce": ("data.produce", "write records: lines of standard input or of files"),
    "consume": ("data.consume", "print records of topics, alone or as a member of a group"),
    "top": ("top.top", "a live screen of brokers, topics with their rates, and groups with their lag"),
    "perf": ("perf.perf", "measure throughput and latency as Apache's perf tools do"),
    "topics": ("admin.topics.topics", "list, describe, create, alter and delete topics"),
    "groups": ("admin.groups.groups", "list, describe, reset and delete consumer groups"),
    "configs": (
        "admin.configs.configs",
        "describe and alter configs of topics, brokers, loggers, users, clients and ips",
    ),
    "quotas": ("admin.configs.quotas", "print, set and remove quotas"),
    "acls": ("admin.security.acls", "list, add and remove ACLs"),
    "users": ("admin.security.users", "list, create and delete users that authenticate with SCRAM"),
    "tokens": ("admin.security.tokens", "create, renew, expire and describe delegation tokens"),
    "get-offsets": ("admin.topics.get_offsets", "print offsets of partitions, by time"),
    "delete-records": ("admin.topics.delete_records", "delete the records before an offset"),
    "log-dirs": ("admin.cluster.log_dirs", "print the log directories of brokers and what is in them"),
    "api-versions": ("admin.cluster.api_versions", "print which versions of the APIs the brokers serve"),
    "transactions": ("admin.transactions.transactions", "list, describe and end transactions, find hanging ones"),
    "producers": ("admin.transactions.producers", "print the producers of partitions"),
    "reassign": ("admin.reassignment.reassign", "move replicas between brokers and directories"),
    "elect-leaders": ("admin.reassignment.elect_leaders", "elect preferred or unclean leaders"),
    "cluster": (
        "admin.cluster.cluster",
        "print the controller, the live brokers, and partitions without a leader or with replicas out of sync",
    ),
}
"""Commands that parse their own arguments: the module in `tools`, the help text."""

_TOOL_GC_THRESHOLD: Final = 10_000
"""Objects between two collections of a command: most end before the first one. Python's default, 700, takes
1 to 2 ms of a short command.
"""

_GROUPS: Final = {
    "run a broker": ("serve", "zookeeper", "health", "metadata"),
    "records": ("produce", "consume", "get-offsets", "delete-records", "perf"),
    "topics and replicas": ("topics", "reassign", "elect-leaders", "log-dirs"),
    "groups and transactions": ("groups", "transactions", "producers"),
    "the cluster": ("cluster", "top", "configs", "quotas", "users", "acls", "tokens", "api-versions"),
    "files of a broker": ("verify", "dump-log"),
    "the shell": ("completion",),
}
"""The commands in the order of the help."""

_DESCRIPTION: Final = """\
A Kafka broker in pure Python, compatible with Apache Kafka 3.9 (ZooKeeper mode), and commands for its clusters.

first steps:
  odradek serve                                   run a broker; in a second terminal:
  echo hello | odradek produce -t greetings       write a record
  odradek consume -t greetings -o beginning -e    read it
"""

_EPILOG: Final = """\
`odradek COMMAND --help` describes a command. Commands ask 127.0.0.1:9092 unless --bootstrap-server names other brokers.
"""

_SERVE_HELP: Final = """\
Without arguments: one node on 127.0.0.1:9092 that keeps its metadata itself, data in ./odradek-data.

A configuration file is a server.properties as Apache Kafka 3.9 knows it. Settings are taken from --override, then from
environment variables (KAFKA_LOG_DIRS for log.dirs), then from the file, then from the defaults.
"""

_SERVE_EXAMPLES: Final = """\
examples:
  odradek serve
  odradek serve --port 0 --data /tmp/kafka           a free port; the address is printed
  odradek serve server.properties --override log.dirs=/data
  odradek serve --brokers 3                          a cluster on ports 9092 to 9094, metadata service on 9091
  odradek serve --as-version 2.8                     the API versions of Apache Kafka 2.8, for tests of clients
"""

_COMPLETION_EXAMPLES: Final = """\
examples:
  source <(odradek completion bash)                                    in ~/.bashrc
  odradek completion zsh > "${fpath[1]}/_odradek"                      once, then a new shell
  odradek completion fish > ~/.config/fish/completions/odradek.fish
"""

_ZOOKEEPER_HELP: Final = """\
Run a metadata service for brokers that are started with zookeeper.connect=HOST:PORT: Odradek's or Apache Kafka's.

It speaks the client protocol of ZooKeeper 3.8 and is one node: for development, tests, a cluster on one machine.
When it stops, its clients wait until it is back. A production cluster uses an ensemble of Apache ZooKeeper.
"""

_ZOOKEEPER_EXAMPLES: Final = """\
examples:
  odradek zookeeper                                  127.0.0.1:2181, data in ./odradek-zookeeper
  odradek zookeeper --port 0 --data /tmp/zookeeper   a free port; the address is printed
  odradek zookeeper --config zoo.cfg
"""

_COPY_HELP: Final = """\
Copy a cluster's metadata (topics, configs, ids, counters) while no broker runs on either side. The log directories are
used as they are. A copy that was interrupted is completed by running it again.

LOCATION is a directory that holds (or gets) odradek-metadata.db, that file itself, or a ZooKeeper:
zookeeper://host:port[,host:port]/chroot
"""

_COPY_EXAMPLES: Final = """\
examples:
  odradek metadata copy --from ./odradek-data --to zookeeper://127.0.0.1:2181/kafka
  odradek metadata copy --from zookeeper://127.0.0.1:2181/kafka --to ./odradek-data
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    _open_closed_streams()
    if given and given[0] in _TOOLS:
        from odradek.broker.tools.command.output import written

        return written(lambda: _run_tool(*given))
    parsed = _parser(given[0] if given else "").parse_args(given)
    if parsed.command == "serve":
        return _serve(parsed)
    if parsed.command == "zookeeper":
        return _zookeeper(parsed)
    if parsed.command == "health":
        from odradek.broker.health import main as health

        return health(parsed.address, parsed.command_config)
    if parsed.command == "completion":
        from odradek.broker.tools.command.output import written
        from odradek.broker.tools.completion import print_script

        return written(lambda: print_script(parsed.shell, _full_parser()))
    if parsed.command == "metadata":
        from odradek.broker.metadata_command import main as copy_metadata
        from odradek.broker.tools.command.output import written

        return written(
            lambda: copy_metadata(
                parsed.source,
                parsed.target,
                overwrite=parsed.overwrite,
                config_file=parsed.zk_tls_config_file,
                is_json=parsed.json,
            )
        )
    _parser().print_help()
    return EXIT_USAGE


def _open_closed_streams() -> None:
    """Open /dev/null for the standard streams that the caller closed (`>&-`). Otherwise a file of a log could get the
    descriptor 2, and the interpreter's last message would be written into it.
    """
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, open(fd, mode, encoding="utf-8", errors="replace", closefd=False))  # noqa: SIM115


def _parser(only: str = "") -> argparse.ArgumentParser:
    """The parser of all commands, or of the one that is `only`: making all takes a thirtieth of a broker's start."""
    parser = argparse.ArgumentParser(
        prog="odradek",
        usage="odradek [--help] [--version] COMMAND ...",
        description=_DESCRIPTION,
        formatter_class=HelpFormat,
    )
    parser.add_argument("--version", action="version", version=f"odradek {odradek.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", help=argparse.SUPPRESS)
    if only in _ADD:
        _ADD[only](commands)
        return parser
    for add in _ADD.values():
        add(commands)
    for name, (_, text) in _TOOLS.items():
        commands.add_parser(name, help=text, add_help=False)
    texts = {choice.dest: choice.help for choice in commands._choices_actions}
    listed = "".join(
        f"{title}:\n" + "".join(f"  {name:<17}{texts[name]}\n" for name in names) + "\n"
        for title, names in _GROUPS.items()
    )
    parser.epilog = listed + _EPILOG
    return parser


def _full_parser() -> argparse.ArgumentParser:
    """The parser with the options of all commands."""
    from importlib import import_module

    parser = _parser()
    (commands,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for name, (module, _) in _TOOLS.items():
        commands.choices[name] = import_module(f"odradek.broker.tools.{module}").parser()
    return parser


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from odradek.broker.machine.log_setup import add_log_format, add_log_level

    serve = commands.add_parser(
        "serve",
        help="run a broker",
        description=_SERVE_HELP,
        epilog=_SERVE_EXAMPLES,
        formatter_class=HelpFormat,
    )
    serve.add_argument("file", nargs="?", metavar="server.properties", help="configuration file")
    serve.add_argument("--override", action="append", default=[], metavar="KEY=VALUE", help="set one configuration")
    serve.add_argument("--port", type=_port, metavar="N", help="listen on this port; 0 takes a free one")
    serve.add_argument("--host", metavar="H", help="listen on this address (127.0.0.1 if only the port is given)")
    serve.add_argument("--data", metavar="DIR", help="keep the data here: the same as --override log.dirs=DIR")
    serve.add_argument(
        "--brokers",
        type=int,
        metavar="N",
        help="run a cluster of N brokers on this machine, with their metadata service, for development and tests",
    )
    serve.add_argument(
        "--as-version",
        metavar="RELEASE",
        help="serve what this older release of Apache Kafka served, for tests: as --override odradek.as.version=...",
    )
    serve.add_argument(
        "--ready-line",
        action="append",
        default=[],
        metavar="TEXT",
        help="print this line on stdout when clients can connect, for programs that wait for it",
    )
    add_log_level(serve)
    add_log_format(serve)
    serve.add_argument(
        "--event-loop",
        default="auto",
        choices=("auto", "uvloop", "asyncio"),
        help="auto takes uvloop where it is installed",
    )
    serve.add_argument("--faults", metavar="FILE", help="for tests: fail as the rules in this YAML file say")
    serve.add_argument(
        "--faults-listener",
        metavar="HOST:PORT",
        help="for tests: take rules over HTTP on this loopback address, without authentication",
    )


def _add_zookeeper(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from odradek.broker.machine.log_setup import add_log_level

    zookeeper = commands.add_parser(
        "zookeeper",
        help="run a metadata service that speaks ZooKeeper's protocol, for clusters on one machine",
        description=_ZOOKEEPER_HELP,
        epilog=_ZOOKEEPER_EXAMPLES,
        formatter_class=HelpFormat,
    )
    zookeeper.add_argument("--port", type=_port, metavar="N", help="listen on this port; 0 takes a free one")
    zookeeper.add_argument("--host", metavar="H", help="listen on this address instead of 127.0.0.1")
    zookeeper.add_argument("--data", metavar="DIR", help="keep the data here instead of in ./odradek-zookeeper")
    zookeeper.add_argument("--config", metavar="zoo.cfg", help="a configuration file of ZooKeeper")
    add_log_level(zookeeper)


def _zookeeper(parsed: argparse.Namespace) -> int:
    from odradek.broker.zookeeper_command import main as serve_zookeeper

    given = {"port": parsed.port, "host": parsed.host, "directory": parsed.data}
    fields = {field: value for field, value in given.items() if value is not None}
    return serve_zookeeper(parsed.config, fields, parsed.log_level)


def _add_metadata(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    metadata = commands.add_parser("metadata", help="work on a cluster's metadata")
    actions = metadata.add_subparsers(dest="action", metavar="action", required=True)
    copy = actions.add_parser(
        "copy",
        help="copy it between a data directory and a ZooKeeper",
        description=_COPY_HELP,
        epilog=_COPY_EXAMPLES,
        formatter_class=HelpFormat,
    )
    copy.add_argument("--from", dest="source", required=True, metavar="LOCATION", help="source")
    copy.add_argument(
        "--to", dest="target", required=True, metavar="LOCATION", help="target; it is equal to the source afterwards"
    )
    copy.add_argument(
        "--overwrite",
        action="store_true",
        help="replace a target of another cluster, or one that is not behind the source",
    )
    copy.add_argument("--json", action="store_true", help="print JSON")
    copy.add_argument(
        "--zk-tls-config-file", metavar="FILE", help="zookeeper.ssl.* and odradek.zookeeper.sasl.* for ZooKeeper"
    )


def _add_health(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    health = commands.add_parser(
        "health", help="check whether a broker answers", description="Exit status 0 if it does."
    )
    health.add_argument("address", metavar="HOST:PORT")
    health.add_argument("--command-config", metavar="FILE", help="properties of the client: security.protocol, ssl.*")


def _add_completion(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    completion = commands.add_parser(
        "completion",
        help="print a script that completes commands and options",
        description="Print a script that completes commands and options.",
        epilog=_COMPLETION_EXAMPLES,
        formatter_class=HelpFormat,
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


_ADD: Final = {
    "serve": _add_serve,
    "health": _add_health,
    "metadata": _add_metadata,
    "zookeeper": _add_zookeeper,
    "completion": _add_completion,
}
"""What adds each of the commands that are parsed here, in the order of their help."""


def _run_tool(name: str, *arguments: str) -> int:
    """Run a tool. Its output is UTF-8 in every locale."""
    import gc
    import io
    from importlib import import_module

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    module, _ = _TOOLS[name]
    gc.disable()  # an import makes many objects that stay, and each collection would look at them
    tool = import_module(f"odradek.broker.tools.{module}")
    gc.freeze()
    gc.set_threshold(_TOOL_GC_THRESHOLD)
    gc.enable()
    status: int = tool.main(arguments)
    gc.freeze()  # else the end of the interpreter looks at all objects
    return status


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port")
    return port


def _serve_cluster(parsed: argparse.Namespace) -> int:
    from odradek.broker.local_cluster.plan import ClusterOptions
    from odradek.broker.local_cluster.supervisor import run

    return run(
        ClusterOptions(
            brokers=parsed.brokers,
            host=parsed.host or "127.0.0.1",
            port=9092 if parsed.port is None else parsed.port,
            data=parsed.data or "odradek-data",
            file=parsed.file,
            overrides=tuple(parsed.override),
            log_level=parsed.log_level,
            log_format=parsed.log_format,
            event_loop=parsed.event_loop,
            as_version=parsed.as_version,
            faults=parsed.faults,
            faults_listener=parsed.faults_listener,
            ready_lines=tuple(parsed.ready_line),
        )
    )


def _serve(parsed: argparse.Namespace) -> int:
    if parsed.brokers is not None:
        return _serve_cluster(parsed)
    import gc

    gc.disable()  # until the modules of the broker are loaded: collections were a tenth of the time until it listens
    try:
        return _serve_broker(parsed)
    finally:
        gc.enable()


def _serve_broker(parsed: argparse.Namespace) -> int:
    from odradek.broker.machine.log_setup import configure_logging
    from odradek.broker.machine.startup_error import StartupError, refuse
    from odradek.storage.config.config_def import ConfigError

    configure_logging(parsed.log_level, parsed.log_format)
    try:
        config = _configure(parsed)
        faults = _faults(parsed)
    except (StartupError, ConfigError) as error:
        return refuse(error)
    from odradek.broker.daemon import run

    return run(config, parsed.event_loop, parsed.ready_line, faults)


def _faults(parsed: argparse.Namespace) -> FaultSetup | None:
    if parsed.faults is None and parsed.faults_listener is None:
        return None
    from odradek.broker.faults.fault_setup import FaultSetup

    return FaultSetup(parsed.faults, parsed.faults_listener)


def _configure(parsed: argparse.Namespace) -> BrokerConfig:
    """The configuration from the arguments, the environment and the file."""
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.config.config_sources import gather_settings
    from odradek.storage.config.config_def import ConfigError

    settings = gather_settings(
        file=parsed.file, overrides=[*parsed.override, *_shortcuts(parsed)], environment=os.environ
    )
    try:
        config = BrokerConfig(settings.texts, origins=settings.origins)
    except ConfigError as error:
        raise settings.without_values(error) from None
    _warn(settings, config)
    return config


def _shortcuts(parsed: argparse.Namespace) -> list[str]:
    """--port, --host, --data and --as-version as overrides."""
    from odradek.broker.config.broker_config import AS_VERSION
    from odradek.broker.machine.startup_error import StartupError
    from odradek.controller.model.broker_info import format_address

    given = {override.partition("=")[0].strip() for override in parsed.override}
    shortcuts = []
    if parsed.port is not None or parsed.host is not None:
        if "listeners" in given:
            raise StartupError("--port and --host contradict --override listeners=...")
        host = parsed.host or "127.0.0.1"
        port = 9092 if parsed.port is None else parsed.port
        shortcuts.append(f"listeners=PLAINTEXT://{format_address(host, port)}")
    if parsed.data is not None:
        if given & {"log.dirs", "log.dir"}:
            raise StartupError("--data contradicts --override log.dirs=...")
        shortcuts.append(f"log.dirs={parsed.data}")
    if parsed.as_version is not None:
        if AS_VERSION in given:
            raise StartupError(f"--as-version contradicts --override {AS_VERSION}=...")
        shortcuts.append(f"{AS_VERSION}={parsed.as_version}")
    return shortcuts


def _warn(settings: Settings, config: BrokerConfig) -> None:
    import logging

    from odradek.storage.config.message_format import why_broker_setting_is_ignored

    logger = logging.getLogger(__name__)
    ignored = why_broker_setting_is_ignored(config.settings)
    if ignored is not None:
        logger.warning(ignored)
    for name in config.unknown_keys:
        logger.warning("The configuration '%s' (from %s) is not known; ignored.", name, settings.origins[name])
    for name, reason in config.keys_without_effect.items():
        logger.warning("The configuration '%s' (from %s) has no effect: %s.", name, settings.origins[name], reason)
