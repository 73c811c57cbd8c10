/** What the system refuses (a full disk, a missing right) in one line; everything else passes as it is. */
import { JobtableError, type ErrorCode } from "../../job/errors.js";

/** @param what could not be done, as the start of the line. */
export async function explained<T>(
  code: ErrorCode,
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    throw new JobtableError(code, `${what}: ${error.message}`, { cause: error });
  }
}
