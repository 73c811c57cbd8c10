/** The type of what a config file may hold, for `jobtable.config.ts`. */
import type { SettingName, SETTINGS } from "./settings.js";

type Rows = typeof SETTINGS;

/** A number, or text with a unit where the setting has one. */
type FileValue<Row> = Row extends { kind: "boolean" }
  ? boolean
  : Row extends { kind: "integer" }
    ? number
    : Row extends { kind: "duration" | "bytes" }
      ? number | string
      : Row extends { kind: "choice"; choices: readonly (infer Choice)[] }
        ? Choice
        : string;

/** Settings by their names in docs/settings.md; each may be left out. */
export type SettingsFile = { readonly [Name in SettingName]?: FileValue<Rows[Name]> };

/**
 * Gives a config file its types; the value stays as it is.
 *
 *     // jobtable.config.ts
 *     export default defineConfig({ max_workers: 8, async_job_ttl: "7d" });
 */
export function defineConfig(settings: SettingsFile): SettingsFile {
  return settings;
}
