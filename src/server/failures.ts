/** Formats the error that ends `svc-server`: one line for a Fault, the stack for any other. */
import { CODES, type TableCode } from '../errors/codes.ts'
import { Fault } from '../errors/fault.ts'
import { redactText } from '../telemetry/log.ts'

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g

/** Returns the text with its line end, and the exit code. The text has no configuration value. */
export function renderFailure(error: unknown): { readonly text: string; readonly exit: number } {
  if (error instanceof Fault) return { text: `svc-server: ${faultLine(error)}\n`, exit: error.exit }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const message = CODES.PLATFORM_INTERNAL.message
  return { text: `svc-server: PLATFORM_INTERNAL: ${message}\n${redactText(stack)}\n`, exit: 1 }
}

/** Redacts the detail, which alone may contain values of settings; all other text is fixed. */
function faultLine(fault: Fault): string {
  const parts = [`${fault.code}:`]
  if (fault.violations.length > 0) {
    parts.push(`${fault.violations.map((violation) => violation.path).join(', ')}:`)
  }
  parts.push(fault.message)
  const rules = [...new Set(fault.violations.map((violation) => violation.rule))]
  if (rules.length > 0) parts.push(`Expected: ${rules.join('; ')}.`)
  else if (fault.detail !== undefined) parts.push(redactText(`(${fault.detail})`))
  if (Object.hasOwn(CODES, fault.code)) parts.push(CODES[fault.code as TableCode].next)
  return parts.join(' ').replace(CONTROL, ' ')
}
