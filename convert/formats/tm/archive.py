"""Reads the ZIP archive of a container: offsets and sizes of its members.

Members follow each other from the first byte of the file on, the directory follows the last one, and the end
record ends the file. Gaps, other data and overlapping members are errors.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tmconvert.formats.tm.faults import broken_archive, refused_member
from tmconvert.formats.tm.format import (
    CENTRAL_HEADER,
    CENTRAL_MARK,
    DESCRIPTION,
    END,
    END_64,
    END_64_MARK,
    END_MARK,
    LOCAL_HEADER,
    LOCAL_MARK,
    LOCATOR_64,
    LOCATOR_64_MARK,
    MEMBERS,
    WEIGHTS,
    WIDE,
    WIDE_FIELD,
)

UTF8_NAMES = 0x800


class Member(NamedTuple):
    """Offset and size of a member's content in the file, and its checksum."""

    start: int
    size: int
    checksum: int


class _Entry(NamedTuple):
    """A header: flags, method, checksum, size and name; in the directory also the offset."""

    name: bytes
    flags: int
    method: int
    checksum: int
    stored_size: int
    size: int
    offset: int


def find_members(data: memoryview) -> dict[str, Member]:
    """Returns the members of the archive by name. Raises LoadError TM1010 or TM1011."""
    count, start, stop = _directory(data)
    members: dict[str, Member] = {}
    position, expected = start, 0
    for _ in range(count):
        entry, position = _central(data, position, stop)
        name = entry.name.decode("ascii", "backslashreplace")
        if name in members:
            raise refused_member(f"the archive has two members named {name}")
        if name not in MEMBERS:
            raise refused_member(f"the archive has an unexpected member {name[:80]!r}")
        _check_plain(name, entry)
        if entry.offset != expected:
            raise broken_archive(f"{name} does not start at the end of the previous member")
        members[name] = _member(data, entry, name, start)
        expected = members[name].start + members[name].size
    if position != stop or expected != start:
        raise broken_archive("the archive has bytes that do not belong to a member")
    if list(members) != [name for name in MEMBERS if name in members]:
        raise broken_archive("the members of the archive are not in the order of the container format")
    for name in (DESCRIPTION, WEIGHTS):
        if name not in members:
            raise refused_member(f"the archive has no member {name}")
    return members


def _directory(data: memoryview) -> tuple[int, int, int]:
    """Returns number of members, start and end of the directory."""
    end = len(data) - END.size
    if end < 0 or bytes(data[end : end + 4]) != END_MARK:
        raise broken_archive(
            "the archive does not end like a ZIP archive: it is truncated, or data was appended"
        )
    _, disk, first_disk, here, count, size, start, comment = END.unpack_from(data, end)
    if comment:
        raise refused_member("the archive has a comment")
    stop = end
    if start == WIDE:
        stop, here, count, size, start = _wide_directory(data, end)
    if disk or first_disk or here != count:
        raise refused_member("the archive is part of a multi-disk set")
    if count > len(MEMBERS):
        raise refused_member(f"the archive has {count} members")
    if start + size != stop:
        raise broken_archive("the directory of the archive does not end before the end record")
    return count, start, stop


def _wide_directory(data: memoryview, end: int) -> tuple[int, int, int, int, int]:
    """Returns the same from the ZIP64 end record, which precedes its locator and the usual end record."""
    locator = end - LOCATOR_64.size
    stop = locator - END_64.size
    if stop < 0:
        raise broken_archive("the archive has no ZIP64 end record")
    mark, disk, offset, disks = LOCATOR_64.unpack_from(data, locator)
    if mark != LOCATOR_64_MARK or disk or disks != 1 or offset != stop:
        raise broken_archive("the archive has no ZIP64 end record at the stated offset")
    mark, length, _, _, disk, first_disk, here, count, size, start = END_64.unpack_from(data, stop)
    if mark != END_64_MARK or length != END_64.size - 12 or disk or first_disk:
        raise broken_archive("the ZIP64 end record is damaged")
    return stop, here, count, size, start


def _central(data: memoryview, position: int, stop: int) -> tuple[_Entry, int]:
    """Returns one entry of the directory, and the offset of the next one."""
    if position + CENTRAL_HEADER.size > stop:
        raise broken_archive("the directory of the archive is truncated")
    fields = CENTRAL_HEADER.unpack_from(data, position)
    mark, _, _, flags, method, _, _, checksum, stored, size, name, extra, comment, disk, _, _, offset = fields
    body = position + CENTRAL_HEADER.size
    following = body + name + extra + comment
    if mark != CENTRAL_MARK or following > stop:
        raise broken_archive("the directory of the archive is damaged")
    if comment or disk:
        raise refused_member("a member of the archive has a comment, or is on another disk")
    size, stored, offset = _widened(bytes(data[body + name : body + name + extra]), size, stored, offset)
    said = bytes(data[body : body + name])
    return _Entry(said, flags, method, checksum, stored, size, offset), following


def _member(data: memoryview, entry: _Entry, name: str, stop: int) -> Member:
    """Returns the member of a directory entry, after comparing it with its own header."""
    if entry.offset + LOCAL_HEADER.size > stop:
        raise broken_archive(f"{name} starts after the end of the archive")
    fields = LOCAL_HEADER.unpack_from(data, entry.offset)
    mark, _, flags, method, _, _, checksum, stored, size, length, extra = fields
    body = entry.offset + LOCAL_HEADER.size
    begin = body + length + extra
    if mark != LOCAL_MARK or begin + entry.size > stop:
        raise broken_archive(f"{name} ends after the end of the archive")
    size, stored, _ = _widened(bytes(data[body + length : begin]), size, stored, 0)
    own = _Entry(bytes(data[body : body + length]), flags, method, checksum, stored, size, entry.offset)
    if own != entry:
        raise broken_archive(f"the header of {name} and the directory contradict each other")
    return Member(begin, size, checksum)


def _check_plain(name: str, entry: _Entry) -> None:
    if entry.flags & ~UTF8_NAMES:
        raise refused_member(
            f"{name} is encrypted or has its length after the data (flags 0x{entry.flags:04x})"
        )
    if entry.method:
        raise refused_member(f"{name} is compressed (method {entry.method}); members must be stored")
    if entry.stored_size != entry.size:
        raise broken_archive(f"{name} has two different lengths")


def _widened(extra: bytes, size: int, stored: int, offset: int) -> tuple[int, int, int]:
    """Returns size, stored size and offset, with 64-bit values from the ZIP64 field."""
    wide = _fields(extra).get(WIDE_FIELD, b"")
    numbers = list(struct.unpack(f"<{len(wide) // 8}Q", wide))
    values = [size, stored, offset]
    places = [i for i, value in enumerate(values) if value == WIDE]
    if len(places) > len(numbers):
        raise broken_archive("a length in the archive is missing")
    for place, number in zip(places, numbers, strict=False):
        values[place] = number
    return values[0], values[1], values[2]


def _fields(extra: bytes) -> dict[int, bytes]:
    """Returns the extra fields of a header by number."""
    fields: dict[int, bytes] = {}
    position = 0
    while position < len(extra):
        if position + 4 > len(extra):
            raise broken_archive("an extra field of the archive is truncated")
        number, length = struct.unpack_from("<2H", extra, position)
        position += 4
        if position + length > len(extra) or number in fields or (number == WIDE_FIELD and length % 8):
            raise broken_archive("an extra field of the archive is damaged")
        fields[number] = extra[position : position + length]
        position += length
    return fields
