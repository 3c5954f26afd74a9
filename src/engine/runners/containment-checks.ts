/** Checks that the kernel contains runners: by the probes of a runner and by kernel state. */
import { Fault } from '../../errors/fault.ts'
import type { Containment } from '../../runner/protocol/messages.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Hello } from './ports.ts'
import type { Runner } from './runner.ts'

/** `full`: no file, network or other process is within reach of a Function. */
export type ContainmentLevel = 'full' | 'partial' | 'none'

export interface ContainmentRule {
  /** `required` fails the start of the server without full containment. */
  readonly sandbox: 'preferred' | 'required'
}

export function levelOf({ landlock, seccomp, unprivileged, seatbelt }: Containment) {
  if (seatbelt || (landlock > 0 && seccomp && unprivileged)) return 'full'
  return landlock > 0 || seccomp ? 'partial' : 'none'
}

/**
 * Returns the level of containment. Throws SERVER_SANDBOX_UNAVAILABLE where a required layer is
 * missing or a probe escapes.
 */
export async function checkContainment(
  runner: Runner,
  { sandbox }: ContainmentRule,
  log: Logger,
): Promise<ContainmentLevel> {
  const hello = await runner.hello
  if (hello === null || hello.probes === null) {
    throw new Fault('SERVER_SANDBOX_UNAVAILABLE', { detail: 'a runner does not start' })
  }
  const { landlock, seccomp, unprivileged } = hello.containment
  const level = levelOf(hello.containment)
  const leaks = leaksOf(hello)
  if (level === 'full' && runner.process.isContained() === false)
    leaks.push('a thread that is not contained')
  if (leaks.length > 0) {
    throw new Fault('SERVER_SANDBOX_UNAVAILABLE', { detail: `escapes: ${leaks.join(', ')}` })
  }
  if (level === 'full') return level
  const missing = Object.entries({
    Landlock: landlock > 0,
    seccomp,
    'a user of its own': unprivileged,
  })
    .filter(([, holds]) => !holds)
    .map(([name]) => name)
  if (sandbox === 'required') {
    throw new Fault('SERVER_SANDBOX_UNAVAILABLE', { detail: `missing: ${missing.join(', ')}` })
  }
  log.warn('runner.containment', {
    message: `Functions are not fully contained on this machine; missing: ${missing.join(', ')}.`,
  })
  return level
}

/** Returns the probes that escaped. A runner runs only the probes that its layers must stop. */
function leaksOf({ probes }: Hello): string[] {
  return (probes ?? []).filter(([, stopped]) => !stopped).map(([name]) => name)
}
