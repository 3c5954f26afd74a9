/**
 * `svc mcp allow`, `svc mcp deny` and `svc mcp permissions`: what agents may do beyond reading. A
 * permission is given on a terminal, which an agent does not have, and ends by itself.
 * `svc mcp rejections` lists what they tried in vain.
 */
import type { Capability } from '../../../value/capabilities.ts'
import type { Json } from '../../../value/strict-json.ts'
import { listParts } from '../../command-line/arguments.ts'
import { argument, type CommandSpec, type Context, command, option } from '../../contexts.ts'
import { ALLOWABLE, isAllowable } from '../../mcp/capabilities.ts'
import type { Permission, PermissionTarget } from '../../mcp/permissions.ts'
import type { Output } from '../../output.ts'
import { openRemote } from '../../roots/remotes.ts'
import { timeText } from '../../timestamps.ts'
import { usage } from '../../usage.ts'
import { REMOTE } from '../operations.ts'

const DURATION = /^([1-9][0-9]{0,5})([mhd])$/
const UNIT_SECONDS = { m: 60, h: 3_600, d: 86_400 }
/** Rejected calls that are listed by default, and at most. */
const REJECTIONS = 50
const REJECTIONS_MAX = 1_000
const CAPABILITY = {
  ...argument('CAPABILITY', 'Such as data:read; several are separated by commas'),
  values: ALLOWABLE,
  list: true,
} as const

const allowCommand: CommandSpec = command({
  name: 'mcp allow',
  summary: 'Permit agents more than to read everything but documents, for a time',
  details: [
    'Needs a terminal and a confirmation. The permission is for one Environment. It is kept beside',
    'your credentials and takes effect in each `svc mcp` that has --allow with the capability.',
  ],
  positionals: [CAPABILITY],
  options: {
    ...REMOTE,
    for: option('TIME', 'How long, such as 30m, 8h or 7d; at most 30d, by default 8h'),
  },
  examples: ['svc mcp allow data:read --root ./my-app', 'svc mcp allow data:write --for 30m'],
  async run(context, { for: duration, ...at }, [given]) {
    const { stdin, stderr } = context.environment
    const capabilities = capabilitiesOf(given!)
    const { PERMISSION_SECONDS, PERMISSION_SECONDS_MAX, PermissionStore } = await import(
      '../../mcp/permissions.ts'
    )
    const seconds = duration === undefined ? PERMISSION_SECONDS : secondsOf(duration)
    if (seconds === null || seconds > PERMISSION_SECONDS_MAX) {
      throw usage('--for needs a time such as 30m, 8h or 7d, at most 30d.', allowCommand)
    }
    if (!stdin.isTTY || !stderr.isTTY) {
      throw usage('A permission is given on a terminal, by a person.', allowCommand)
    }
    const target = await targetOf(context, at)
    await confirm(context, { capabilities, target, seconds })
    const added = await new PermissionStore(context).allow(target, capabilities, seconds)
    await context.output.result(documentOf(added), [
      ...table(context.output, added),
      'It takes effect in `svc mcp` with these arguments in .mcp.json:',
      `  ${capabilities.map((capability) => `"--allow", "${capability}"`).join(', ')}`,
    ])
  },
})

const denyCommand: CommandSpec = command({
  name: 'mcp deny',
  summary: 'Take permissions back from agents, at once',
  details: ['Without a capability it takes back all permissions for the Environment.'],
  positionals: [{ ...CAPABILITY, required: false }],
  options: REMOTE,
  examples: ['svc mcp deny', 'svc mcp deny data:write --root ./my-app'],
  async run(context, at, [given]) {
    const capabilities = given === undefined ? null : capabilitiesOf(given)
    const { PermissionStore } = await import('../../mcp/permissions.ts')
    const store = new PermissionStore(context)
    const removed = await store.deny(await targetOf(context, at), capabilities)
    const count = removed.length === 1 ? '1 permission' : `${removed.length} permissions`
    await context.output.result(documentOf(removed), [`Took back ${count}.`])
  },
})

const listCommand: CommandSpec = command({
  name: 'mcp permissions',
  summary: 'List the permissions of agents that have not ended',
  options: {},
  async run(context) {
    const { PermissionStore } = await import('../../mcp/permissions.ts')
    const permissions = await new PermissionStore(context).list()
    await context.output.result(documentOf(permissions), table(context.output, permissions))
  },
})

const rejectionsCommand: CommandSpec = command({
  name: 'mcp rejections',
  summary: 'List tool calls of agents that were rejected or failed, newest first',
  details: [
    '`svc mcp` records each such call beside your credentials, and keeps the newest ones. What',
    'a session did at a server is in `svc audit`, under the same session.',
  ],
  options: {
    limit: option('COUNT', `Number of calls, 1 to ${REJECTIONS_MAX}; ${REJECTIONS} by default`),
  },
  examples: ['svc mcp rejections', 'svc mcp rejections --limit 1000 --json'],
  async run(context, { limit }) {
    const { RejectedCalls } = await import('../../mcp/rejected-calls.ts')
    const count = limit === undefined ? REJECTIONS : Number(limit)
    if (!Number.isInteger(count) || count < 1 || count > REJECTIONS_MAX) {
      throw usage(`--limit needs a number from 1 to ${REJECTIONS_MAX}.`, rejectionsCommand)
    }
    const calls = (await new RejectedCalls(context).list()).slice(0, count)
    const { output } = context
    const rows = output.columns(calls, {
      TIME: ({ atMicros }) => timeText(atMicros),
      TOOL: 'tool',
      CODE: 'code',
      ENVIRONMENT: ({ environmentId }) => environmentId ?? '-',
      SESSION: ({ sessionId }) => sessionId ?? '-',
      REASON: 'reason',
    })
    await output.result({ version: 1, calls: calls.map((call) => ({ ...call })) }, rows)
  },
})

export const permissionCommands: readonly CommandSpec[] = [
  allowCommand,
  denyCommand,
  listCommand,
  rejectionsCommand,
]

/** Returns the capabilities of a list that the parser of the command line accepted. */
function capabilitiesOf(text: string): readonly Capability[] {
  return listParts(text).filter(isAllowable)
}

function secondsOf(text: string): number | null {
  const parts = DURATION.exec(text)
  if (parts === null) return null
  return Number(parts[1]) * UNIT_SECONDS[parts[2] as keyof typeof UNIT_SECONDS]
}

async function targetOf(
  context: Context,
  at: Parameters<typeof openRemote>[1],
): Promise<PermissionTarget> {
  const { permissionTarget } = await import('../../mcp/agent-session.ts')
  return permissionTarget(await openRemote(context, at))
}

interface Asked {
  readonly capabilities: readonly Capability[]
  readonly target: PermissionTarget
  readonly seconds: number
}

/** Throws CLIENT_USAGE unless the person types the capabilities. */
async function confirm(context: Context, { capabilities, target, seconds }: Asked): Promise<void> {
  const { environment, output } = context
  const { TOOLS } = await import('../../mcp/tools.ts')
  const names = TOOLS.filter(({ capability }) => capabilities.includes(capability!)).map(
    ({ operation }) => operation.name,
  )
  const end = environment.system.nowMicros() + BigInt(seconds) * 1_000_000n
  await output.warn(
    [
      `Until ${timeText(String(end))}, agents that run \`svc mcp\` as this user may use`,
      `  ${names.join(', ')}`,
      `at ${target.environmentId} of ${target.managementOrigin ?? 'svc dev'}.`,
      'Text in your data can mislead an agent: permit only what it needs now.',
    ].join('\n'),
  )
  const expected = capabilities.join(',')
  await output.prompt(`Type ${expected} to permit it: `)
  const typed = await environment.stdin.readLine({ echo: true })
  if (typed?.trim() !== expected) throw usage('Nothing was permitted.', allowCommand)
}

function table(output: Output, permissions: readonly Permission[]): string[] {
  return output.columns(permissions, {
    CAPABILITY: 'capability',
    ENVIRONMENT: 'environmentId',
    SERVER: ({ managementOrigin }) => managementOrigin ?? 'svc dev',
    ENDS: ({ endsAtMicros }) => timeText(String(endsAtMicros)),
  })
}

function documentOf(permissions: readonly Permission[]): Json {
  const rows = permissions.map(({ grantedAtMicros, endsAtMicros, ...rest }) => ({
    ...rest,
    grantedAtMicros: String(grantedAtMicros),
    endsAtMicros: String(endsAtMicros),
  }))
  return { version: 1, permissions: rows }
}
