"""What TensorBoard shows for a folder of event files, read from the files' bytes by its rules."""

import struct

from tensorboardX.proto.event_pb2 import Event, SessionLog


def shown(folder):
    """Points (step, value) by tag.

    Files are read in the order of their names; one that begins a session at a step makes everything from that step on
    in earlier files forgotten; a record that was never completed ends its file.
    """
    curves = {}
    for path in sorted(folder.iterdir()):
        data, at = path.read_bytes(), 0
        while at + 16 <= len(data):
            (length,) = struct.unpack("<Q", data[at : at + 8])
            if at + 16 + length > len(data):
                break
            event = Event.FromString(data[at + 12 : at + 12 + length])
            at += 16 + length
            if event.HasField("session_log") and event.session_log.status == SessionLog.START:
                for tag, points in curves.items():
                    curves[tag] = [point for point in points if point[0] < event.step]
            for value in event.summary.value:
                curves.setdefault(value.tag, []).append((event.step, value.simple_value))
    return curves
