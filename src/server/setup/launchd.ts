/**
 * The service as a daemon of launchd.
 *
 * Source: launchctl(1) and launchd.plist(5) of macOS.
 */
import { LOG_FILE, PLIST_FILE, SERVICE, USER } from './locations.ts'
import type { Machine } from './machine.ts'
import { LAUNCHD_PLIST } from './service-files.generated.ts'
import { type Action, command, commandThatMay, type Step, waitUntil } from './steps.ts'

const TARGET = `system/${SERVICE}`
/** Exit code of `launchctl bootout` while the service ends. */
const IN_PROGRESS = 36
const SHIPPED_EXECUTABLE = '/usr/local/bin/svc-server'
/** No comment may precede the declaration of XML. */
const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

export const PLIST_MARK = '<!-- Written by `svc-server setup`, which replaces it. -->\n'

export function plist(executable: string): string {
  const text = LAUNCHD_PLIST.slice(DECLARATION.length)
  return DECLARATION + PLIST_MARK + text.replaceAll(SHIPPED_EXECUTABLE, () => escaped(executable))
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function print(machine: Machine): Promise<string | null> {
  return machine.ask(['launchctl', 'print', TARGET])
}

async function isRunning(machine: Machine): Promise<boolean> {
  return /\bstate = running\b/.test((await print(machine)) ?? '')
}

/** Returns the commands that end the service; none where launchd does not know it. */
export async function stopActions(machine: Machine): Promise<Action[]> {
  if ((await print(machine)) === null) return []
  return [
    commandThatMay(IN_PROGRESS, 'launchctl', 'bootout', TARGET),
    waitUntil('launchd has ended the service', async () => (await print(machine)) === null),
  ]
}

export async function isLoaded(machine: Machine): Promise<boolean> {
  return (await print(machine)) !== null
}

export function logStep(machine: Machine): Step {
  return {
    title: `Create the log ${LOG_FILE}`,
    isDone: async () => machine.state(LOG_FILE) !== null,
    actions: [command('install', '-m', '0600', '-o', USER, '-g', USER, '/dev/null', LOG_FILE)],
    ifItFails: 'Check that /var/log can be written.',
  }
}

/** `isWritten` tells whether launchd finds the definition that is planned. */
export async function startStep(
  machine: Machine,
  isWritten: () => Promise<boolean>,
): Promise<Step> {
  // A service with another definition is ended before the new one is written.
  const knowsIt = (await isWritten()) && (await isLoaded(machine))
  const start = knowsIt
    ? [command('launchctl', 'kickstart', TARGET)]
    : [
        command('launchctl', 'enable', TARGET),
        command('launchctl', 'bootstrap', 'system', PLIST_FILE),
      ]
  return {
    title: 'Start the service, now and with the machine',
    isDone: async () => (await isWritten()) && (await isRunning(machine)),
    actions: [...start, waitUntil('launchd runs the service', () => isRunning(machine))],
    ifItFails: `Read the end of ${LOG_FILE}, and what launchd says: launchctl print ${TARGET}`,
  }
}
