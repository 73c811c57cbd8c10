/** One bar for each comparison that has a goal: how many times better than its goal, to the right of the line, or worse, to the left. */
import { median } from "../measure.js";
import { listedTarget, show, type Result } from "../report.js";
import type { Row } from "../row.js";
import { logarithmic, short } from "./scale.js";
import { element, svg, text } from "./svg.js";

const WIDTH = 940;
const MARGIN = 16;
const LEFT = 40;
const RIGHT = 690;
const TOP = 92;
const ROW = 38;
/** Nothing is drawn further away from its goal; its figure says how far it is. */
const FURTHEST = 32;
const BASE = 2;

interface Bar {
  readonly label: string;
  readonly times: number;
  readonly note: string;
  readonly met: boolean;
}

/** @param results of P1 to P12; what has no goal is left out. */
export function goalPlot(results: readonly Result[], subtitle: string): string {
  const bars = results.flatMap((result) =>
    result.kind === "ran" ? result.rows.flatMap((row) => barOf(result.name, row)) : [],
  );
  const scale = logarithmic([1 / BASE, BASE, ...bars.map(({ times }) => times)], BASE);
  const x = (times: number): number => LEFT + scale.at(times) * (RIGHT - LEFT);
  const bottom = TOP + ROW * Math.max(1, bars.length);
  return svg({
    width: WIDTH,
    height: bottom + 20,
    title: "Goals P1 to P12: how many times better than the goal",
    subtitle,
    description:
      bars.length === 0
        ? "Not measured yet."
        : bars.map(({ label, note }) => `${label}: ${note}.`).join(" "),
    body: [
      ...scale.ticks.flatMap((tick) => [
        element("line", {
          class: tick === 1 ? "axis" : "grid",
          x1: x(tick),
          x2: x(tick),
          y1: TOP - 12,
          y2: bottom,
        }),
        text(tick === 1 ? "goal" : `${short(tick)} x`, {
          class: "soft",
          x: x(tick),
          y: TOP - 18,
          "text-anchor": "middle",
        }),
      ]),
      ...bars.flatMap((bar, index) => drawn(bar, TOP + ROW * index, x)),
      ...(bars.length === 0
        ? [text("not measured yet", { class: "soft", x: WIDTH / 2, y: TOP + 20 })]
        : []),
    ],
  });
}

function drawn({ label, times, note, met }: Bar, top: number, x: (times: number) => number) {
  const [from, to] = [x(1), x(times)];
  return [
    text(label, { x: MARGIN, y: top + 11 }),
    element("rect", {
      class: met ? "dot0" : "dot1",
      x: Math.min(from, to),
      y: top + 17,
      width: Math.max(1, Math.abs(to - from)),
      height: 12,
    }),
    text(note, { class: "soft", x: WIDTH - MARGIN, y: top + 28, "text-anchor": "end" }),
  ];
}

/** Nothing for a row without a goal, or without a figure. */
function barOf(name: string, row: Row): Bar[] {
  const { target, peer, product, what, unit } = row;
  if (target === null) return [];
  const reached = median((peer === null ? product.rounds : row.ratios).filter(Number.isFinite));
  if (!Number.isFinite(reached)) return [];
  const times = "atLeast" in target ? reached / target.atLeast : target.atMost / reached;
  const of = peer === null ? unit : "times";
  return [
    {
      label: `${name} ${what}${peer === null ? "" : `, against ${peer.name}`}`,
      times: Math.min(Math.max(times, 1 / FURTHEST), FURTHEST),
      note: `${show(reached)} ${of}, goal ${listedTarget(target)}`,
      met: row.met === true,
    },
  ];
}
