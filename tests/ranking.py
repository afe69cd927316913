#!/usr/bin/env python3
"""Computes the ranking of games from raw heartbeats, by its documented rule and
nothing of the platform's code.

    ranking.py <beats> <now>

`beats` has one JSON object a line, {"time": ms, "game": slug, "player": id}, and
`now` is a time in milliseconds. A player is playing while the last beat is at most
75 s old. What lies between two beats of a player in a game that are at most 75 s
apart was played; who played 60 s or more in a game counts there. Prints JSON: the
games with their players of the day and of now, most first, equals by name.
"""

import json
import sys
from collections import defaultdict

APART = 75_000
ENOUGH = 60_000


def main(path, now):
    beats = defaultdict(list)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            beat = json.loads(line)
            beats[beat["game"], beat["player"]].append(beat["time"])
    day, playing = defaultdict(int), defaultdict(int)
    for (game, _player), times in beats.items():
        times.sort()
        gaps = (later - earlier for earlier, later in zip(times, times[1:]))
        played = sum(gap for gap in gaps if gap <= APART)
        day[game] += played >= ENOUGH
        playing[game] += now - times[-1] <= APART
    games = {game for game, _player in beats}
    ranked = sorted(games, key=lambda game: (-day[game], -playing[game], game))
    return [
        {"slug": game, "players_day": day[game], "players_now": playing[game]}
        for game in ranked
    ]


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
