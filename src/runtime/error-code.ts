/** The codes by which the system says why something failed, such as `ENOENT`. */

/** Empty where an error has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Null where it fails with one of these codes. */
export async function orNull<T>(work: Promise<T>, ...codes: readonly string[]): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (codes.includes(codeOf(error))) return null;
    throw error;
  }
}
