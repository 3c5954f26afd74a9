/**
 * The command line `svc`. It runs on Bun and on Node 20.12 or newer; `tools` provides what only the
 * executable has.
 */
import { Fault, isFault } from '../errors/fault.ts'
import { parseLine, wantsJson } from './command-line/arguments.ts'
import { commandHelp, groupHelp, helpDocument, programHelp } from './command-line/help.ts'
import { backupCommands } from './commands/backups/backups.ts'
import { backupVerifyCommand } from './commands/backups/verify.ts'
import { buildCommand } from './commands/build.ts'
import { callCommand } from './commands/call.ts'
import { functionFiguresCommand, functionsCommand, tablesCommand } from './commands/catalogs.ts'
import { clientCommands } from './commands/clients.ts'
import { completionCommand } from './commands/completion/completion.ts'
import { configCommands } from './commands/config.ts'
import { consoleCommand } from './commands/console/console.ts'
import { credentialCommands } from './commands/credentials.ts'
import { dataCommands } from './commands/data/documents.ts'
import { devCommand } from './commands/development/dev.ts'
import { freezeCommand } from './commands/development/freeze.ts'
import { devHookCommand } from './commands/development/hook.ts'
import { docsCommand } from './commands/docs.ts'
import { doctorCommand } from './commands/doctor/doctor.ts'
import { environmentCommands } from './commands/environments.ts'
import { bucketCommands } from './commands/files/buckets.ts'
import { fileCommands } from './commands/files/objects.ts'
import { storageKeyCommands } from './commands/files/storage-keys.ts'
import { openapiCommand } from './commands/functions/openapi.ts'
import { watchCommand } from './commands/functions/watch.ts'
import { healthCommand } from './commands/health.ts'
import { httpCommands } from './commands/http/mounts.ts'
import { auditCommand } from './commands/identity/audit.ts'
import { authStatusCommand } from './commands/identity/auth-status.ts'
import { grantCommands } from './commands/identity/grants.ts'
import { invitationCommands } from './commands/identity/invitations.ts'
import { inviteCommand } from './commands/identity/invite.ts'
import { operatorCommands } from './commands/identity/operators.ts'
import { resourcesCommand } from './commands/identity/resources.ts'
import { rolesCommand } from './commands/identity/roles.ts'
import { sessionCommands } from './commands/identity/sessions.ts'
import { whoamiCommand } from './commands/identity/whoami.ts'
import { importCommands } from './commands/imports/imports.ts'
import { initCommand } from './commands/init.ts'
import { linkCommand } from './commands/link.ts'
import { loginCommand } from './commands/login.ts'
import { logoutCommand } from './commands/logout.ts'
import { logCommands } from './commands/logs/logs.ts'
import { mcpCommands } from './commands/mcp/mcp.ts'
import { metricsCommand } from './commands/metrics/metrics.ts'
import { migrationCommands } from './commands/migrations/migrations.ts'
import { promoteCommand } from './commands/promote.ts'
import { publishCommand } from './commands/publish.ts'
import { releaseCommand } from './commands/release.ts'
import { diffCommand } from './commands/releases/diff.ts'
import { releaseCommands } from './commands/releases.ts'
import { rollbackCommand } from './commands/rollback.ts'
import { cronCommands } from './commands/schedules/crons.ts'
import { scheduledCommands } from './commands/schedules/scheduled.ts'
import { servePolicyCommands } from './commands/serve-policy.ts'
import { statusCommand } from './commands/status.ts'
import { upgradeCommand } from './commands/upgrade/upgrade.ts'
import { versionCommand } from './commands/version.ts'
import { codegenCommand } from './commands/workspaces/codegen.ts'
import type { CommandSpec, Context } from './contexts.ts'
import type { WorkspaceTools } from './development/workspace-tools.ts'
import type { ClientEnvironment } from './environment.ts'
import { Output } from './output.ts'

export const COMMANDS: readonly CommandSpec[] = [
  initCommand,
  devCommand,
  devHookCommand,
  freezeCommand,
  consoleCommand,
  loginCommand,
  logoutCommand,
  authStatusCommand,
  whoamiCommand,
  ...sessionCommands,
  resourcesCommand,
  inviteCommand,
  ...invitationCommands,
  ...operatorCommands,
  ...grantCommands,
  rolesCommand,
  auditCommand,
  linkCommand,
  buildCommand,
  codegenCommand,
  publishCommand,
  diffCommand,
  releaseCommand,
  promoteCommand,
  rollbackCommand,
  ...releaseCommands,
  ...migrationCommands,
  ...cronCommands,
  ...httpCommands,
  ...scheduledCommands,
  ...bucketCommands,
  ...storageKeyCommands,
  ...fileCommands,
  functionsCommand,
  functionFiguresCommand,
  tablesCommand,
  ...dataCommands,
  ...importCommands,
  statusCommand,
  healthCommand,
  doctorCommand,
  metricsCommand,
  ...logCommands,
  ...backupCommands,
  ...servePolicyCommands,
  ...environmentCommands,
  ...configCommands,
  ...clientCommands,
  ...credentialCommands,
  callCommand,
  watchCommand,
  openapiCommand,
  backupVerifyCommand,
  ...mcpCommands,
  docsCommand,
  completionCommand(() => COMMANDS),
  upgradeCommand,
  versionCommand,
]

/** Runs a command line, which begins with the command. Returns the exit code after all output. */
export async function runClient(
  argv: readonly string[],
  environment: ClientEnvironment,
  tools: (() => Promise<WorkspaceTools>) | null = null,
): Promise<number> {
  const output = new Output(environment, { json: wantsJson(argv) })
  const interrupt = new AbortController()
  const critical = new Set<Promise<unknown>>()
  const remarks = new Set<string>()
  let graceMs = INTERRUPT_GRACE_MS
  let exit = 0
  const context: Context = {
    environment,
    output,
    tools,
    signal: interrupt.signal,
    uninterrupted: (work) => {
      critical.add(work)
      return work.finally(() => critical.delete(work))
    },
    remark: (text) => void remarks.add(text),
    exitWith: (code) => {
      exit = code
    },
    endsInOrder: () => {
      graceMs = ORDERLY_END_MS
    },
  }
  const undo = environment.onInterrupt(() => interrupt.abort())
  try {
    await Promise.race([runLine(argv, context), interrupted(interrupt.signal, () => graceMs)])
    return exit
  } catch (error) {
    await Promise.allSettled(critical)
    return output.fail(isFault(error) ? error : unexpected(error))
  } finally {
    for (const remark of remarks) await output.note(remark)
    undo()
  }
}

async function runLine(argv: readonly string[], context: Context): Promise<void> {
  const line = parseLine(argv, COMMANDS)
  if (!line.help && line.command !== null) return line.command.run(context, line.invocation)
  const within = (group: string) => COMMANDS.filter(({ name }) => name.startsWith(`${group} `))
  const { command, group } = line
  if (group !== null) {
    const members = within(group)
    return context.output.result(helpDocument(members), groupHelp(group, members))
  }
  if (command === null) {
    return context.output.result(helpDocument(COMMANDS), programHelp(COMMANDS))
  }
  const members = within(command.name)
  await context.output.result(helpDocument([command]), commandHelp(command, members))
}

/** Time for a command to report what was interrupted; a build does not observe the signal. */
const INTERRUPT_GRACE_MS = 200
/** Time for a command that has processes and stores to close. */
const ORDERLY_END_MS = 10_000

function interrupted(signal: AbortSignal, graceMs: () => number): Promise<never> {
  return new Promise((_, reject) => {
    const end = (): void => reject(new Fault('CLIENT_INTERRUPTED'))
    // The timer must not keep the process of a command that has ended.
    const begin = (): void => void setTimeout(end, graceMs()).unref()
    signal.addEventListener('abort', begin, { once: true })
  })
}

/** Wraps a programming error. Its text helps the report of it and contains no credential. */
function unexpected(error: unknown): Fault {
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : 'Unknown failure.'
  return new Fault('CLIENT_FAILED', { detail, cause: error })
}
