/** One line for each kind of what was measured, over the steps of what grows; a bar at each step reaches from its smallest round to its largest. */
import { median } from "../measure.js";
import { show } from "../report.js";
import { even, linear, logarithmic, short, stepped, type Scale } from "./scale.js";
import { element, LINES, svg, text } from "./svg.js";

export interface Point {
  readonly x: number;
  readonly rounds: readonly number[];
}

export interface Line {
  readonly name: string;
  readonly points: readonly Point[];
}

export interface LinePlot {
  readonly title: string;
  readonly subtitle: string;
  /** With the unit where it has one. */
  readonly xName: string;
  readonly xUnit?: string;
  /** Default: a mark for each step, in powers of ten. */
  readonly xScale?: "even";
  readonly yUnit: string;
  readonly yScale: "linear" | "log";
  readonly lines: readonly Line[];
}

const SIZE = { width: 760, height: 450 };
const LEFT = 76;
const RIGHT = SIZE.width - 28;
const BOTTOM = SIZE.height - 52;
/** Between the axis and the first step, and behind the last. */
const INSET = 24;
/** The first row of the legend, and from one to the next. */
const LEGEND = 68;
const LEGEND_ROW = 18;
/** Of the points of a line, in words. */
const MOST_SAID = 12;
/** More points than this are a line alone. */
const FEW = 20;

interface Drawn {
  readonly x: number;
  readonly middle: number;
  readonly least: number;
  readonly most: number;
}

export function linePlot(plot: LinePlot): string {
  const lines = plot.lines.slice(0, LINES).map(({ name, points }) => ({
    name,
    points: points.flatMap(drawn).sort((a, b) => a.x - b.x),
  }));
  const top = LEGEND + LEGEND_ROW * (lines.length + 1);
  const all = lines.flatMap(({ points }) => points);
  const xs = (plot.xScale === "even" ? even : stepped)(all.map(({ x }) => x));
  const values = all.flatMap(({ least, most }) => [least, most]);
  const ys = plot.yScale === "log" ? logarithmic(values, 10) : linear(values);
  const x = (value: number): number => LEFT + INSET + xs.at(value) * (RIGHT - LEFT - 2 * INSET);
  const y = (value: number): number => BOTTOM - ys.at(value) * (BOTTOM - top);
  return svg({
    ...SIZE,
    title: plot.title,
    subtitle: plot.subtitle,
    description: described(plot, lines),
    body: [
      ...axes(plot, xs, ys, x, y),
      ...legend(lines),
      ...lines.flatMap(({ points }, index) => curve(points, index, x, y)),
      ...(all.length === 0
        ? [text("not measured yet", { class: "soft", x: (LEFT + RIGHT) / 2, y: 220 })]
        : []),
    ],
  });
}

/** Nothing where no round gave a number. */
function drawn({ x, rounds }: Point): Drawn[] {
  const good = rounds.filter(Number.isFinite);
  if (good.length === 0) return [];
  return [{ x, middle: median(good), least: Math.min(...good), most: Math.max(...good) }];
}

function described(
  { xUnit, yUnit }: LinePlot,
  lines: readonly { readonly name: string; readonly points: readonly Drawn[] }[],
): string {
  const said = lines.map(({ name, points }) => {
    const figures = fewOf(points).map((point) => `${short(point.x, xUnit)}: ${show(point.middle)}`);
    return `${name}, ${yUnit}: ${figures.join("; ")}.`;
  });
  return said.length === 0 ? "Not measured yet." : said.join(" ");
}

/** Nobody wants to hear of each minute: the first, the last and some between. */
function fewOf<Item>(items: readonly Item[]): readonly Item[] {
  if (items.length <= MOST_SAID) return items;
  const step = (items.length - 1) / (MOST_SAID - 1);
  const places = Array.from({ length: MOST_SAID }, (_, index) => Math.round(index * step));
  return items.filter((_, index) => places.includes(index));
}

function axes(
  { xName, xUnit, yUnit }: LinePlot,
  xs: Scale,
  ys: Scale,
  x: (value: number) => number,
  y: (value: number) => number,
): string[] {
  return [
    ...ys.ticks.flatMap((tick) => [
      element("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: y(tick), y2: y(tick) }),
      text(short(tick), { class: "soft", x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }),
    ]),
    ...xs.ticks.flatMap((tick) => [
      element("line", { class: "axis", x1: x(tick), x2: x(tick), y1: BOTTOM, y2: BOTTOM + 5 }),
      text(short(tick, xUnit), {
        class: "soft",
        x: x(tick),
        y: BOTTOM + 20,
        "text-anchor": "middle",
      }),
    ]),
    element("line", { class: "axis", x1: LEFT, x2: RIGHT, y1: BOTTOM, y2: BOTTOM }),
    element("line", { class: "axis", x1: LEFT, x2: LEFT, y1: y(ys.ticks.at(-1) ?? 0), y2: BOTTOM }),
    text(xName, { x: (LEFT + RIGHT) / 2, y: SIZE.height - 12, "text-anchor": "middle" }),
    text(yUnit, { x: 16, y: y(ys.ticks.at(-1) ?? 0) - 14 }),
  ];
}

function legend(lines: readonly { readonly name: string }[]): string[] {
  return lines.flatMap(({ name }, index) => {
    const y = LEGEND + LEGEND_ROW * index;
    const stroke = { class: `line line${String(index)}`, y1: y - 4, y2: y - 4 };
    return [
      element("line", { ...stroke, x1: LEFT, x2: LEFT + 30 }),
      text(name, { x: LEFT + 38, y }),
    ];
  });
}

function curve(
  points: readonly Drawn[],
  index: number,
  x: (value: number) => number,
  y: (value: number) => number,
): string[] {
  if (points.length === 0) return [];
  const path = points.map((point) => `${x(point.x).toFixed(1)},${y(point.middle).toFixed(1)}`);
  const stroke = `line${String(index)}`;
  const marked = points.length <= FEW ? points : [];
  return [
    element("polyline", { class: `line ${stroke}`, points: path.join(" ") }),
    ...marked.flatMap((point) => {
      const at = x(point.x);
      return [
        element("line", { class: stroke, x1: at, x2: at, y1: y(point.least), y2: y(point.most) }),
        element("circle", { class: `dot${String(index)}`, cx: at, cy: y(point.middle), r: 4 }),
      ];
    }),
  ];
}
