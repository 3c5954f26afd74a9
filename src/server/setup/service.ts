/** The steps that bring the service user, its directories, the Product root and the service. */
import { dirname, join } from 'node:path'
import { userSteps } from './accounts.ts'
import { unsupported } from './faults.ts'
import { isLoaded, logStep, PLIST_MARK, plist, startStep, stopActions } from './launchd.ts'
import {
  DESCRIPTOR_FILE,
  EXAMPLE,
  HOME,
  LOG_FILE,
  OPENRC_FILE,
  PLIST_FILE,
  PRODUCT,
  SERVICE,
  STATE,
  UNIT_FILE,
  USER,
} from './locations.ts'
import type { Machine, PlannedFile } from './machine.ts'
import { asUser, type Platform, type ServiceManager } from './platforms.ts'
import { OPENRC_SCRIPT, SYSTEMD_UNIT } from './service-files.generated.ts'
import { command, type Step, waitUntil, writeFile } from './steps.ts'

const PRIVATE = 0o700
const RUNLEVEL_LINK = `/etc/runlevels/default/${SERVICE}`
const SHIPPED_EXECUTABLE = '/usr/local/bin/svc-server'
const UNIT_MARK = '# Written by `svc-server setup`. Changes: systemctl edit svc-server\n'
const SCRIPT_MARK = '# Written by `svc-server setup`, which replaces it.\n'

/** Directories of people and of a moment, which the unit hides from the service. */
const HIDDEN = /^\/(?:home|root|run\/user|tmp|var\/tmp)\//
/** Those of macOS, which the service cannot read, or which are emptied. */
const HIDDEN_ON_MACOS = /^\/(?:Users|Volumes|(?:private\/)?(?:tmp|var\/(?:tmp|root|folders)))\//

/** Throws SERVER_SETUP_UNSUPPORTED where the service could not start the executable. */
export function requireLastingExecutable({ executable, system }: Machine): void {
  const hidden = system === 'darwin' ? HIDDEN_ON_MACOS : HIDDEN
  if (!hidden.test(executable)) return
  throw unsupported(
    `The service cannot run ${executable}, which is in a directory of a person or a temporary ` +
      'one. Copy it to /usr/local/bin/svc-server, and call that one',
  )
}

/** Path of the client: the same executable under another name. */
export function clientPath({ executable }: Machine): string {
  return join(dirname(executable), 'svc')
}

/** Steps that all later ones need. */
export function toolSteps(machine: Machine, { family }: Platform): Step[] {
  if (family !== 'alpine') return []
  return [
    {
      title: 'Install runuser, which runs a command as another user',
      isDone: async () => machine.hasProgram('runuser'),
      actions: [command('apk', 'add', 'runuser')],
      ifItFails: 'Check that this machine reaches the package servers.',
    },
  ]
}

export async function accountSteps(machine: Machine, platform: Platform): Promise<Step[]> {
  const client = clientPath(machine)
  const name: Step = {
    title: 'Give the executable its second name, svc',
    isDone: async () => machine.state(client) !== null,
    actions: [command('ln', machine.executable, client)],
    ifItFails: `Copy ${machine.executable} to ${client}.`,
  }
  const users = await userSteps(machine, platform)
  return machine.state(client) === null ? [name, ...users] : users
}

/** Root creates one directory. Inside it the service user acts, since its links could lead away. */
export function directorySteps(
  machine: Machine,
  platform: Platform,
  environmentName: string,
): Step[] {
  const asService = asUser(platform, USER)
  const init = ['env', `HOME=${HOME}`, clientPath(machine), 'init', '--root', PRODUCT]
  const isPrivate = async (path: string): Promise<boolean> => {
    const state = machine.state(path)
    if (state?.isDirectory !== true || state.mode !== PRIVATE) return false
    return state.uid === (await machine.userId(USER))
  }
  return [
    {
      title: `Create the directories of the data in ${HOME}`,
      isDone: async () => (await isPrivate(HOME)) && (await isPrivate(STATE)),
      actions: [
        command('install', '-d', '-m', '0700', '-o', USER, '-g', USER, HOME),
        command(...asService, 'mkdir', '-p', '-m', '0700', STATE),
        // One that exists keeps its mode at the line before.
        command(...asService, 'chmod', '0700', STATE),
      ],
      ifItFails: `Check that ${HOME} is on a writable file system, and whom it belongs to.`,
    },
    {
      title: `Create the Product root in ${PRODUCT}, and an example in ${EXAMPLE}`,
      isDone: async () => machine.state(DESCRIPTOR_FILE) !== null,
      actions: [command(...asService, ...init, '--workspace', EXAMPLE, '--name', environmentName)],
      ifItFails: `Check that the user ${USER} can run ${clientPath(machine)} and write ${HOME}.`,
    },
  ]
}

export interface ServiceOptions {
  /** Returns whether the server answers at its addresses. */
  readonly isServing: () => Promise<boolean>
}

/** No steps without a service manager. */
export async function serviceSteps(
  machine: Machine,
  platform: Platform,
  { isServing }: ServiceOptions,
): Promise<Step[]> {
  const file = serviceFile(machine, platform)
  if (file === null) return []
  const isLaunchd = platform.serviceManager === 'launchd'
  const ends = isLaunchd ? await stopActions(machine) : []
  const writes: Step = {
    title: `Write the service ${file.path}`,
    isDone: async () => {
      requireOwnFile(machine, file.path)
      return await machine.isWritten(file)
    },
    actions: [...ends, writeFile(file)],
    ifItFails: `Check that ${dirname(file.path)} can be written.`,
  }
  const ready: Step = {
    title: 'Wait until the server is ready',
    isDone: isServing,
    actions: [waitUntil('the server answers', isServing)],
    ifItFails:
      isLaunchd || platform.serviceManager === 'openrc'
        ? `Read the end of ${LOG_FILE}.`
        : `Read the log: journalctl --unit ${SERVICE} --lines 50`,
  }
  if (isLaunchd) {
    return [logStep(machine), writes, await startStep(machine, writes.isDone), ready]
  }
  if (platform.serviceManager === 'openrc') return [writes, startWithOpenRc(machine), ready]
  const steps = [writes, ...systemdSteps(machine, platform, writes.isDone)]
  return platform.serviceManager === 'systemd' ? [...steps, ready] : steps
}

function systemdSteps(
  machine: Machine,
  { serviceManager }: Platform,
  isWritten: () => Promise<boolean>,
): Step[] {
  const isEnabled = async () =>
    (await machine.ask(['systemctl', 'is-enabled', SERVICE])) === 'enabled'
  if (serviceManager !== 'systemd') {
    return [
      {
        title: 'Let the service start with the machine',
        isDone: isEnabled,
        actions: [command('systemctl', 'enable', SERVICE)],
        ifItFails: 'Enable the service when systemd runs: systemctl enable --now svc-server',
      },
    ]
  }
  const reload = ['systemctl', 'show', '--property=NeedDaemonReload', '--value', SERVICE]
  const isActive = async () => (await machine.ask(['systemctl', 'is-active', SERVICE])) === 'active'
  return [
    {
      title: 'Let systemd read the service',
      // A service that was read before needs it after each change, and a new one never.
      isDone: async () => (await isWritten()) && (await machine.ask(reload)) === 'no',
      actions: [command('systemctl', 'daemon-reload')],
      ifItFails: `Ask systemd for the reason: systemd-analyze verify ${UNIT_FILE}`,
    },
    {
      title: 'Start the service, now and with the machine',
      isDone: async () => (await isEnabled()) && (await isActive()),
      actions: [command('systemctl', 'enable', '--now', SERVICE)],
      ifItFails: `Read the log: journalctl --unit ${SERVICE} --lines 50`,
    },
  ]
}

function startWithOpenRc(machine: Machine): Step {
  return {
    title: 'Start the service, now and with the machine',
    isDone: async () =>
      machine.state(RUNLEVEL_LINK) !== null &&
      (await machine.ask(['rc-service', SERVICE, 'status'])) !== null,
    actions: [
      command('rc-update', 'add', SERVICE, 'default'),
      command('rc-service', SERVICE, 'start'),
    ],
    ifItFails: `Read the end of ${LOG_FILE}.`,
  }
}

/** Stops and removes the service. Everything else stays. */
export async function removalSteps(
  machine: Machine,
  { serviceManager }: Platform,
): Promise<Step[]> {
  if (serviceManager === 'none') return []
  const path = pathOf(serviceManager)
  const isGone = async () => {
    requireOwnFile(machine, path)
    if (serviceManager === 'launchd' && (await isLoaded(machine))) return false
    return machine.state(path) === null
  }
  const isInRunlevel = machine.state(RUNLEVEL_LINK) !== null
  const stop = {
    systemd: [command('systemctl', 'disable', '--now', SERVICE)],
    'offline systemd': [command('systemctl', 'disable', SERVICE)],
    openrc: [
      command('rc-service', '--ifstarted', SERVICE, 'stop'),
      ...(isInRunlevel ? [command('rc-update', 'delete', SERVICE, 'default')] : []),
    ],
    launchd: serviceManager === 'launchd' ? await stopActions(machine) : [],
  }[serviceManager]
  const reload = serviceManager === 'systemd' ? [command('systemctl', 'daemon-reload')] : []
  return [
    {
      title: 'Stop the service and remove it',
      isDone: isGone,
      actions: [...stop, command('rm', '-f', path), ...reload],
      ifItFails: 'Stop the service by hand, and run this again.',
    },
  ]
}

/** The definition of the service; null without a service manager. */
function serviceFile(machine: Machine, { serviceManager }: Platform): PlannedFile | null {
  if (serviceManager === 'none') return null
  const path = pathOf(serviceManager)
  const { executable } = machine
  const content = () => {
    if (path === PLIST_FILE) return plist(executable)
    return path === OPENRC_FILE ? openRcScript(executable) : unit(executable)
  }
  const mode = path === OPENRC_FILE ? 0o755 : 0o644
  return { path, mode, group: null, content, isSecret: false, keepsContent: false }
}

function pathOf(manager: Exclude<ServiceManager, 'none'>): string {
  if (manager === 'launchd') return PLIST_FILE
  return manager === 'openrc' ? OPENRC_FILE : UNIT_FILE
}

/** Rejects a file that the administrator, a package or another program wrote. */
function requireOwnFile(machine: Machine, path: string): void {
  const text = machine.read(path)
  if (text === null || text.includes(UNIT_MARK) || text.includes(SCRIPT_MARK)) return
  if (text.includes(PLIST_MARK)) return
  // What `install.sh --service` wrote differs from the shipped file by the path alone.
  const head = SYSTEMD_UNIT.slice(0, SYSTEMD_UNIT.indexOf('\n') + 1)
  if (text.startsWith(head)) return
  throw unsupported(`${path} exists, and this setup did not write it. Move it away first`)
}

/** Replaces the path as one word of systemd, in which % begins a specifier. */
function unit(executable: string): string {
  const plain = executable.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%')
  const word = /^[\w/.+%-]+$/.test(plain) ? plain : `"${plain}"`
  return UNIT_MARK + SYSTEMD_UNIT.replaceAll(SHIPPED_EXECUTABLE, () => word)
}

function openRcScript(executable: string): string {
  const [interpreter, ...rest] = OPENRC_SCRIPT.split('\n')
  const word = `'${executable.replaceAll("'", "'\\''")}'`
  const script = rest.join('\n').replaceAll(SHIPPED_EXECUTABLE, () => word)
  return `${interpreter}\n${SCRIPT_MARK}${script}`
}
