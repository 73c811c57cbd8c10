/**
 * The paper that plots are drawn on. An image brings its own ground and its own colours, light or
 * dark as the reader's system asks, and says in words (`<title>`, `<desc>`) what it shows.
 */

export interface Sheet {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  /** Where the figures are from. */
  readonly subtitle: string;
  /** All figures in words. */
  readonly description: string;
  /** Elements, drawn in their order. */
  readonly body: readonly string[];
}

/** Lines differ by colour and by dash: `line0`, `dot0` and on. */
export const LINES = 4;

/**
 * How classes look on light ground: attributes of the elements, so that what knows no CSS shows the
 * same. The style sheet goes before attributes, and has what is different on dark ground.
 */
const LOOKS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  title: { "font-size": "16", "font-weight": "600" },
  soft: { fill: "#57606a" },
  ground: { fill: "#ffffff" },
  grid: { stroke: "#d8dee4" },
  axis: { stroke: "#57606a" },
  line: { fill: "none", "stroke-width": "2" },
  line0: { stroke: "#0969da" },
  line1: { stroke: "#bc4c00", "stroke-dasharray": "7 4" },
  line2: { stroke: "#1a7f37", "stroke-dasharray": "2 4" },
  line3: { stroke: "#8250df", "stroke-dasharray": "9 3 2 3" },
  dot0: { fill: "#0969da" },
  dot1: { fill: "#bc4c00" },
  dot2: { fill: "#1a7f37" },
  dot3: { fill: "#8250df" },
};

const INK = `font-family="system-ui, sans-serif" font-size="12" fill="#24292f"`;

const DARK_STYLE = `
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .soft { fill: #9198a1; }
    .ground { fill: #0d1117; }
    .grid { stroke: #30363d; }
    .axis { stroke: #9198a1; }
    .line0 { stroke: #58a6ff; } .dot0 { fill: #58a6ff; }
    .line1 { stroke: #f0883e; } .dot1 { fill: #f0883e; }
    .line2 { stroke: #3fb950; } .dot2 { fill: #3fb950; }
    .line3 { stroke: #bc8cff; } .dot3 { fill: #bc8cff; }
  }
`;

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

export function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (char) => ESCAPES[char] ?? char);
}

/** An element without children. Numbers are rounded, so that the same figures give the same text. */
export function element(name: string, attributes: Readonly<Record<string, string | number>>) {
  let drawn = attributes;
  for (const look of String(attributes["class"] ?? "").split(" "))
    drawn = { ...drawn, ...LOOKS[look] };
  const written = Object.entries(drawn).map(
    ([key, value]) =>
      ` ${key}="${typeof value === "number" ? String(Number(value.toFixed(1))) : escaped(value)}"`,
  );
  return `<${name}${written.join("")}/>`;
}

export function text(words: string, attributes: Readonly<Record<string, string | number>>): string {
  return element("text", attributes).replace(/\/>$/, `>${escaped(words)}</text>`);
}

export function svg({ width, height, title, subtitle, description, body }: Sheet): string {
  const size = `width="${String(width)}" height="${String(height)}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${String(width)} ${String(height)}" ${INK} role="img" aria-labelledby="title desc">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="desc">${escaped(description)}</desc>`,
    `<style>${DARK_STYLE}</style>`,
    element("rect", { class: "ground", width, height }),
    text(title, { class: "title", x: 16, y: 26 }),
    text(subtitle, { class: "soft", x: 16, y: 44 }),
    ...body,
    "</svg>",
    "",
  ].join("\n");
}
