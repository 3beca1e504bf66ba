"""One picture of all the paper's numbers and the range of our seeds for each."""

from evergait.figures.style import Picture, legend_below, panels, task_colours
from evergait.paper.ranges import Range, study_ranges
from evergait.studies.results import Results


def ranges_figures(results: Results) -> list[Picture]:
    """A panel per condition: lines are ranges of our seeds, dots the paper's numbers; nothing without several seeds."""
    conditions: dict[str, list[Range]] = {}
    for one in study_ranges(results):
        if len(one.ours) > 1:
            conditions.setdefault(one.condition, []).append(one)
    if not conditions:
        return []
    most = max(map(len, conditions.values()))
    figure, axes = panels(1, len(conditions), width=3.0, height=0.6 + 0.13 * most)
    colours = task_colours(f"{one.task}-v5" for ranges in conditions.values() for one in ranges)
    for axis, (condition, ranges) in zip(axes, conditions.items(), strict=True):
        named: set[str] = set()
        for place, one in enumerate(ranges):
            colour, label = colours[f"{one.task}-v5"], "" if one.task in named else one.task
            named.add(one.task)
            axis.plot([one.share(min(one.ours)), one.share(max(one.ours))], [place, place], color=colour, label=label)
            filled = colour if one.is_inside else "white"
            axis.plot(one.share(one.paper), place, "o", color=colour, markerfacecolor=filled, markersize=4)
        labels = [
            f"{''.join(name[0] for name in one.order.split(' > '))}, step {one.step}, {one.extreme}" for one in ranges
        ]
        axis.set_yticks(range(len(ranges)), labels, fontsize=5)
        axis.invert_yaxis()
        axis.set_xlabel("return / the paper's R*")
        axis.set_title(condition)
    legend_below(figure, axes[0])
    caption = "The paper's numbers (dots, hollow where outside) and the range of our seeds (lines)"
    return [Picture("ranges", caption, figure)]
