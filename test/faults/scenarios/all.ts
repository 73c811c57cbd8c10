/** Every scenario, in the order in which they are played. */
import type { Scenario } from "../scenario.js";
import { clocks } from "./clocks.js";
import { disk } from "./disk.js";
import { everything } from "./everything.js";
import { killed } from "./killed.js";
import { paused } from "./paused.js";
import { restarted } from "./restarted.js";

export const SCENARIOS: readonly Scenario[] = [killed, paused, restarted, clocks, disk, everything];
