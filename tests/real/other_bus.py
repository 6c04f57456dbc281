"""The bus as the other system speaks it: what bus.md (a) says, read by somebody else.

Nothing here comes from tenure, and the holes are as they are: lines without a bound, a ledger that remembers failures
and is asked before the secret, one second for an answer. `Server.faults` makes it misbehave.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import re
import secrets
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

Envelope = dict[str, Any]
DURABLE = "durable-follower-admission-v1"
IDENTITY = {"protocolVersion": 1, "runtimeBuild": "another", "capabilities": [DURABLE, "queue-handoff-v1"]}
CODES = ("commit-unknown", "request-id-collision", "ledger-overloaded", "incompatible-protocol")
SOURCE = "pi_telegram_source_update_id"
BODIES = {"leader.forwardCallback": "query", "leader.forwardReaction": "reactionUpdate"}
AGAIN = (FileNotFoundError, ConnectionRefusedError, BrokenPipeError, ConnectionResetError, TimeoutError)


def delivery(kind: str, binding: str, update: int) -> Envelope:
    """What identifies a delivery (bus.md c)."""
    made = {"version": 1, "kind": kind, "recipientBindingKey": binding, "sourceUpdateId": update}
    name = hashlib.sha256(json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
    return {
        "deliveryId": f"telegram-follower-v1-{name}",
        "sourceUpdateId": update,
        "recipientBindingKey": binding,
    }


def short(path: str) -> str:
    """Where a path of more than 80 bytes is."""
    room = os.path.join(tempfile.gettempdir(), f"pi-telegram-{os.getuid()}")
    if len(os.fsencode(path)) <= 80 or (os.path.dirname(path) == room and re.fullmatch(r".*/[0-9a-f]{16}\.sock", path)):
        return path
    return os.path.join(room, hashlib.sha256(os.fsencode(path)).hexdigest()[:16] + ".sock")


def integer(value: object) -> bool:
    """JavaScript's safe integers."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def number(value: object) -> bool:
    """A finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def protocol_of(value: object) -> Envelope | None:
    """A protocol identity; None for a malformed one."""
    if not isinstance(value, dict) or not integer(value.get("protocolVersion")):
        return None
    build, names = value.get("runtimeBuild"), value.get("capabilities")
    if not isinstance(build, str) or not 1 <= len(build.strip()) == len(build) <= 128 or not isinstance(names, list):
        return None
    if not all(isinstance(n, str) and re.fullmatch(r"[a-z0-9][a-z0-9._-]*", n) for n in names):
        return None
    if names != sorted(set(names)) or len(names) > 32:
        return None
    return {"protocolVersion": value["protocolVersion"], "runtimeBuild": build, "capabilities": names}


def unlike(peer: Envelope | None) -> str | None:
    """Why a peer is incompatible."""
    if peer is None:
        return "missing-identity"
    if peer["protocolVersion"] != 1:
        return "version"
    return None if DURABLE in peer["capabilities"] else "missing-capability"


def target_of(value: object) -> Envelope | None:
    """A target, without what it does not know."""
    if not isinstance(value, dict) or not integer(value.get("chatId")):
        return None
    found = {"chatId": value["chatId"]}
    return found | ({"threadId": value["threadId"]} if integer(value.get("threadId")) else {})


def _texts(value: Envelope, *names: str) -> Envelope:
    return {name: value[name] for name in names if isinstance(value.get(name), str)}


def _registration(value: Envelope) -> Envelope | None:
    if not isinstance(value.get("instanceId"), str) or not number(value.get("connectedAtMs")):
        return None
    found = _texts(
        value, "instanceId", "previousInstanceId", "profileKey", "threadName", "cwd", "busSocketPath",
        "registrationGeneration", "processBirthId",
    )  # fmt: skip
    found["connectedAtMs"] = value["connectedAtMs"]
    if isinstance(value.get("slot"), str) and re.fullmatch("[A-Z]", value["slot"]):
        found["slot"] = value["slot"]
    for name in ("pid", "sessionGeneration"):
        if integer(value.get(name)):
            found[name] = value[name]
    if "target" in value:
        found["target"] = target_of(value["target"])
        if found["target"] is None:
            return None
    if (protocol := protocol_of(value.get("protocol"))) is not None:
        found["protocol"] = protocol
    return found


def _ack(value: Envelope) -> Envelope | None:
    if not isinstance(value.get("ok"), bool):
        return None
    found = {"ok": value["ok"], **_texts(value, "message")}
    if "result" in value:
        found["result"] = value["result"]
    if (protocol := protocol_of(value.get("protocol"))) is not None:
        found["protocol"] = protocol
    error = value.get("error")
    if isinstance(error, dict) and error.get("code") in CODES:
        found["error"] = {"code": error["code"], **_texts(error, "method")}
    return found


def _body(kind: str, value: Envelope) -> Envelope | None:
    """What follows kind, request id and secret."""
    if kind == "bus.ack":
        return _ack(value)
    if kind == "follower.register":
        found = _registration(value["registration"]) if isinstance(value.get("registration"), dict) else None
        return None if found is None else {"registration": found}
    if not number(value.get("sentAtMs")):
        return None
    asked = {"follower.heartbeat": (), "follower.disconnect": (), "follower.callApi": ("method", "args")}
    asked |= {"follower.resolveAgentTarget": ("selector",), "follower.routeAgentMessage": ("message",)}
    if kind in asked:
        members = ("instanceId", *asked[kind])
        found = _texts(value, "registrationGeneration")
    elif kind in ("leader.forwardMessage", "leader.forwardEditedMessage", *BODIES):
        members = ("recipientInstanceId", "recipientRegistrationGeneration", "delivery", BODIES.get(kind, "message"))
        found = _texts(value, "forwardCommentBatchPosition")
    elif kind == "leader.replaceFollowerTarget":
        members, found = ("recipientInstanceId", "target", "reason"), _texts(value, "recipientRegistrationGeneration")
    elif kind in ("follower.offerQueueHandoff", "leader.offerQueueHandoff"):
        members = ("recipientInstanceId", "recipientRegistrationGeneration", "handoffToken", "payload")
        found = _texts(value, "instanceId", "registrationGeneration", "donorInstanceId")
    else:
        return None
    if any(name not in value for name in members):
        return None
    return {**found, **{name: value[name] for name in members}, "sentAtMs": value["sentAtMs"]}


def parse(line: bytes) -> Envelope | None:
    """One line; None for what is no envelope."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return None
    if not isinstance(value.get("requestId"), str):
        return None
    body = _body(value["kind"], value)
    return None if body is None else {**_texts(value, "kind", "requestId", "auth"), **body}


def ack(request: Envelope, ok: bool, **members: Any) -> Envelope:
    """An acknowledgement."""
    return {"kind": "bus.ack", "requestId": request["requestId"], "ok": ok, **members}


def no(request: Envelope, message: str, **members: Any) -> Envelope:
    """A negative one."""
    return ack(request, False, message=message, **members)


def may(secret: str | None, request: Envelope) -> bool:
    """Whether it brings the secret."""
    return secret is not None and hmac.compare_digest(secret.encode(), str(request.get("auth", "")).encode())


class Server:
    """An endpoint with its ledger. `publish(rename)` puts it at its path; False: it may not."""

    def __init__(
        self,
        path: str,
        handle: Callable[[Envelope], Awaitable[Envelope]],
        publish: Callable[[Callable[[], None]], bool] | None = None,
    ) -> None:
        self.path, self._handle, self._publish = short(path), handle, publish
        self._ledger: dict[str, tuple[str, asyncio.Task[Envelope]]] = {}
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._lines: set[asyncio.Task[None]] = set()
        self.faults: dict[str, tuple[str, int]] = {}
        """By kind: how to misbehave, and how often (-1: always)."""

    @property
    def up(self) -> bool:
        """It serves."""
        return self._server is not None

    async def start(self) -> None:
        """Listen on a private socket, and put a relative link to it at the path."""
        if self.up:
            return
        room = Path(self.path).parent
        room.mkdir(parents=True, exist_ok=True, mode=0o700)
        private = room / f".pt-{secrets.token_hex(8)}.sock"
        server = await asyncio.start_unix_server(self._serve, str(private), limit=2**30)
        private.chmod(0o600)
        link = f"{self.path}.link.{secrets.token_hex(8)}"
        os.symlink(private.name, link)
        if self._publish is None:
            os.rename(link, self.path)
        elif not self._publish(lambda: os.rename(link, self.path)):
            server.close()
            os.unlink(link)
            raise RuntimeError("the ownership was lost before the endpoint was published")
        self._server = server

    async def stop(self) -> None:
        """Close. What is published stays as it is."""
        server, self._server = self._server, None
        self._ledger.clear()
        for writer in tuple(self._open):
            writer.close()
        if server is not None:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while line := await reader.readline():
                task = asyncio.ensure_future(self._line(line, writer))
                self._lines.add(task)
                task.add_done_callback(self._lines.discard)
        except (ConnectionError, ValueError):
            pass
        finally:
            self._open.discard(writer)

    async def _line(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        request = parse(line)
        answer = (
            {"kind": "bus.ack", "requestId": "invalid", "ok": False} if request is None else await self._once(request)
        )
        how, times = self.faults.get(request["kind"], ("", 0)) if request is not None else ("", 0)
        data = json.dumps(answer).encode() + b"\n"
        if request is not None and times:
            self.faults[request["kind"]] = (how, times - 1)
            data = misbehave(how, answer)
        try:
            if how == "hang" and times:
                return
            writer.write(data)
            await writer.drain()
            if times:
                writer.close()
        except ConnectionError:
            pass

    async def _once(self, request: Envelope) -> Envelope:
        who = request.get("registration", request)
        name = who.get("instanceId") or who.get("recipientInstanceId") or "ack"
        key, print_ = json.dumps([request.get("auth"), name, request["requestId"]]), json.dumps(request)
        if key in self._ledger:
            known, running = self._ledger[key]
            if known != print_:
                return no(request, "request id collision", error={"code": "request-id-collision"})
            return await asyncio.shield(running)
        running = asyncio.ensure_future(self._answer(request))
        self._ledger[key] = print_, running
        return await asyncio.shield(running)

    async def _answer(self, request: Envelope) -> Envelope:
        if request["kind"] == "bus.ack":
            return no(request, "unexpected response")
        try:
            return await self._handle(request)
        except Exception as error:  # the original says no more than this either
            return no(request, f"request failed: {type(error).__name__}: {error}")


def misbehave(how: str, answer: Envelope) -> bytes:
    """What is sent instead of an answer, before the connection is closed."""
    line = json.dumps(answer).encode() + b"\n"
    match how:
        case "drop" | "hang":
            return b""
        case "half":
            return line[: len(line) // 2]
        case "garbage":
            return b"\xff\x00 HTTP/1.1 400 \n"
        case "long":
            return b" " * 20 * 2**20 + line
        case "other id":
            answer = answer | {"requestId": "another:1:1"}
        case "no result":
            answer.pop("result", None)
        case "null result":
            answer["result"] = None
        case "no protocol":
            answer.pop("protocol", None)
        case "version 2":
            answer = answer | {"protocol": IDENTITY | {"protocolVersion": 2}}
        case "incapable":
            answer = answer | {"protocol": IDENTITY | {"capabilities": []}}
        case "no acknowledgement":
            answer = {"kind": "follower.heartbeat", "requestId": answer["requestId"], "instanceId": "x", "sentAtMs": 1}
        case "refusal":
            answer = {"kind": "bus.ack", "requestId": answer["requestId"], "ok": False, "protocol": IDENTITY}
    return json.dumps(answer).encode() + b"\n"


async def once(path: str, request: Envelope, timeout: float) -> Envelope | None:
    """The first line of the answer; None where the other side closes without one."""

    async def talk() -> Envelope | None:
        reader, writer = await asyncio.open_unix_connection(short(path), limit=2**30)
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            line = await reader.readline()
        finally:
            writer.close()
        if not line.endswith(b"\n"):
            return None
        found = parse(line)
        if found is None or found["kind"] != "bus.ack":
            raise ValueError("the answer is none")
        return found

    return await asyncio.wait_for(talk(), timeout)


async def send(path: str, request: Envelope, timeout: float = 1.0, attempts: int = 1, delay: float = 0.0) -> Any:
    """A request, sent again as it is while nobody answers."""
    for attempt in range(1, attempts + 1):
        try:
            return await once(path, request, timeout)
        except AGAIN:
            if attempt == attempts:
                raise
        await asyncio.sleep(delay)
    raise AssertionError
