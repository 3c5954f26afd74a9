/** Development targets: the current revisions of Workspaces, which no application should call. */
import type { Fault } from '../../errors/fault.ts'

/** Returns whether the target is the current revision of a Workspace. */
export function isDevelopmentTarget(target: string): boolean {
  return target.startsWith('workspace:')
}

/** The Function and the target that a request names. */
export interface CallName {
  readonly function: string
  readonly target: string
}

/** Returns the `error` of a Realtime message. `call` is null for an error of the connection. */
export function callerError(fault: Fault, call: CallName | null) {
  const { code, retryable } = fault
  return { code, message: callerMessage(fault, call?.target ?? null), retryable }
}

/**
 * Returns the message of a failure for its caller. On a development target it says which argument
 * breaks which rule, since its caller is the author; elsewhere it is the same for all callers.
 */
export function callerMessage({ code, message, detail }: Fault, target: string | null): string {
  const isExplained = code === 'ARGUMENTS_INVALID' && target !== null && isDevelopmentTarget(target)
  return isExplained && detail !== undefined ? `${message} ${detail}.` : message
}
