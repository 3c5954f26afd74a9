/** The steps that create the service user, with a group of the same name. */
import { unsupported } from './faults.ts'
import { HOME, USER } from './locations.ts'
import type { Machine } from './machine.ts'
import type { Platform } from './platforms.ts'
import { command, type Step } from './steps.ts'

const TITLE = `Create the user ${USER}, who cannot log in`
const BY_HAND = `Create a system user ${USER} with a group of the same name.`
const USERADD = ['useradd', '--system', '--user-group', '--no-create-home'] as const

/** Throws SERVER_SETUP_UNSUPPORTED. */
export async function userSteps(machine: Machine, { family }: Platform): Promise<Step[]> {
  const isDone = async (): Promise<boolean> => (await machine.userId(USER)) !== null
  if (family === 'macos') return await directoryServiceSteps(machine, isDone)
  if (family === 'alpine') {
    const shell = ['-s', '/sbin/nologin']
    const add = command('adduser', '-S', '-D', '-H', '-h', HOME, ...shell, '-G', USER, USER)
    const group = new RegExp(`^${USER}:`, 'm')
    return [
      {
        title: `Create the group ${USER}`,
        isDone: async () => group.test(machine.read('/etc/group') ?? ''),
        actions: [command('addgroup', '-S', USER)],
        ifItFails: BY_HAND,
      },
      { title: TITLE, isDone, actions: [add], ifItFails: BY_HAND },
    ]
  }
  const shell = ['--shell', '/usr/sbin/nologin']
  const actions = [command(...USERADD, '--home-dir', HOME, ...shell, USER)]
  return [{ title: TITLE, isDone, actions, ifItFails: BY_HAND }]
}

/** Numbers below 500 are of services; macOS itself and other installers use those below 400. */
const [NUMBER_MIN, NUMBER_MAX] = [400, 499]

/** Source: dscl(1) of macOS. `-create` replaces a value, so a run after half of them continues. */
async function directoryServiceSteps(
  machine: Machine,
  isDone: () => Promise<boolean>,
): Promise<Step[]> {
  const group = `/Groups/${USER}`
  const user = `/Users/${USER}`
  const gid = await numberOf(machine, group, 'PrimaryGroupID')
  const taken = new Set<number>()
  const lists = [
    ['/Users', 'UniqueID'],
    ['/Groups', 'PrimaryGroupID'],
  ] as const
  for (const [path, key] of lists) {
    const list = (await machine.ask(['dscl', '.', '-list', path, key])) ?? ''
    for (const [number] of list.matchAll(/[0-9]+$/gm)) taken.add(Number(number))
  }
  const numbers = Array.from({ length: NUMBER_MAX - NUMBER_MIN + 1 }, (_, i) => NUMBER_MAX - i)
  const free = numbers.find((number) => !taken.has(number))
  if (free === undefined) {
    throw unsupported(
      `All numbers of users from ${NUMBER_MIN} to ${NUMBER_MAX} are taken. ${BY_HAND}`,
    )
  }
  const set = (path: string, key: string, value: string) =>
    command('dscl', '.', '-create', path, key, value)
  return [
    {
      title: `Create the group ${USER}`,
      isDone: async () => (await numberOf(machine, group, 'PrimaryGroupID')) !== null,
      actions: [
        command('dscl', '.', '-create', group),
        set(group, 'Password', '*'),
        set(group, 'PrimaryGroupID', String(free)),
      ],
      ifItFails: BY_HAND,
    },
    {
      title: TITLE,
      isDone,
      actions: [
        command('dscl', '.', '-create', user),
        set(user, 'RealName', 'svc-server'),
        set(user, 'Password', '*'),
        set(user, 'UserShell', '/usr/bin/false'),
        set(user, 'NFSHomeDirectory', HOME),
        set(user, 'IsHidden', '1'),
        set(user, 'PrimaryGroupID', String(gid ?? free)),
        // The user exists with its number, which is the last one for that reason.
        set(user, 'UniqueID', String(free)),
      ],
      ifItFails: BY_HAND,
    },
  ]
}

async function numberOf(machine: Machine, path: string, key: string): Promise<number | null> {
  const answer = await machine.ask(['dscl', '.', '-read', path, key])
  const [, number] = new RegExp(`^${key}: ([0-9]+)$`, 'm').exec(answer ?? '') ?? []
  return number === undefined ? null : Number(number)
}
