// Reads names of files, one per line, and changes the calls in each of them.
import { readFileSync, writeFileSync } from "node:fs";

const files = readFileSync(0, "utf8").split("\n").filter(Boolean);
for (const file of files) {
  const before = readFileSync(file, "utf8");
  const after = before.replace(/^  warning: .*\n/gm, "").replaceAll("log.warning(", "log.warn(");
  writeFileSync(file, after);
  console.log(`${file}: ${before.split("log.warning(").length - 1} calls`);
}
