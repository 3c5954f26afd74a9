/** Explanations of Faults: the report of the server and the next step, kept as their cause. */
import { Fault } from '../errors/fault.ts'

export interface Explanation {
  /** Request ID of the error response; null if there was none. */
  readonly requestId: string | null
  /** Message of the error response; null if there was none. */
  readonly message: string | null
  /** Next step that replaces the one of the table of codes; null to keep that. */
  readonly next: string | null
  /** Identifiers and names of the request, by the paths that violations have. */
  readonly subjects: Readonly<Record<string, string>>
}

const NOTHING: Explanation = { requestId: null, message: null, next: null, subjects: {} }

class ExplanationCause implements Explanation {
  readonly requestId: string | null
  readonly message: string | null
  readonly next: string | null
  readonly subjects: Readonly<Record<string, string>>

  constructor({ requestId, message, next, subjects }: Explanation) {
    this.requestId = requestId
    this.message = message
    this.next = next
    this.subjects = subjects
  }
}

/** Returns the cause of a new Fault. */
export function explanation(parts: Partial<Explanation>): unknown {
  return new ExplanationCause({ ...NOTHING, ...parts })
}

export function explanationOf({ cause }: Fault): Explanation {
  return cause instanceof ExplanationCause ? cause : NOTHING
}

/** Tells whether the Fault is an error response of a server. */
export function isReported(fault: Fault): boolean {
  return explanationOf(fault).message !== null
}

/** Returns the Fault with a detail, a next step or subjects added. */
export function explained(
  fault: Fault,
  more: { readonly detail?: string } & Partial<Pick<Explanation, 'next' | 'subjects'>>,
): Fault {
  const known = explanationOf(fault)
  const details = [fault.detail, more.detail].filter((text) => text !== undefined)
  const { code, kind, violations, retryable, retryAfterSeconds } = fault
  return new Fault(code, {
    kind,
    violations,
    retryable,
    retryAfterSeconds,
    detail: details.length === 0 ? undefined : details.join(' '),
    cause: new ExplanationCause({
      ...known,
      next: more.next ?? known.next,
      subjects: { ...known.subjects, ...more.subjects },
    }),
  })
}
