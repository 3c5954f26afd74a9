/** Prints the summary of the quickstart: addresses, keys and commands that work unchanged. */
import { shellQuoted } from '../../src/value/shell/shell-words.ts'
import { MOUNT } from './hook.ts'

export interface Shown {
  readonly management: string
  readonly application: string
  readonly publicKey: string
  readonly secretKeyFile: string
  readonly channelId: string
  /** A command that sends an event to the hook; null for a Workspace without it. */
  readonly hook: string | null
  readonly operationId: string
  readonly client: string
  readonly clientEnvironment: Readonly<Record<string, string>>
  readonly productRoot: string
  readonly workspace: string
  readonly backups: string
  readonly backupKey: string
  readonly log: string
  /** Address of the page of chat; null if the Workspace has none. */
  readonly page: string | null
  /** The file with all commands. */
  readonly commands: string
  /** True if the public key has the scope realtime. */
  readonly isLive: boolean
}

export const TARGET = 'channel:production'

const CONSOLE_TITLE = 'Look at all of it in the browser, from a second terminal:'
const AGENTS_TITLE =
  'Let an editor start this for its agent, which then reads it (svc docs agents):'

/** Arguments of messages.send. */
export function message(channelId: string, body: string): object {
  return { channel: channelId, author: 'you', body }
}

function curl(shown: Shown, name: string, given: object, operationId?: string): string {
  const operation = operationId === undefined ? '' : ` -H 'Idempotency-Key: ${operationId}'`
  return [
    `curl -sS ${shown.application}/v1/functions/${name}`,
    `  -H 'Content-Type: application/json' -H 'X-Service-Target: ${TARGET}'`,
    `  -H 'X-Service-Key: ${shown.publicKey}'${operation}`,
    `  -d ${shellQuoted(JSON.stringify(given))}`,
  ].join(' \\\n')
}

/** Commands that can be pasted whole; the last one is for a second terminal. */
function commands(shown: Shown): { title: string; command: string }[] {
  return [
    {
      title: 'Read the messages of the channel (a Query):',
      command: curl(shown, 'messages.list', { channel: shown.channelId }),
    },
    {
      title: 'Write one (a Mutation; the same Idempotency-Key takes effect once):',
      command: curl(
        shown,
        'messages.send',
        message(shown.channelId, 'Hello from curl'),
        shown.operationId,
      ),
    },
    ...(shown.hook === null
      ? []
      : [
          {
            title: 'Write one as another service (a hook; the same event takes effect once):',
            command: shown.hook,
          },
          {
            title: 'See what other services sent, and what became of it:',
            command: operatorCommand(shown, ['http', 'deliveries', MOUNT]),
          },
        ]),
    {
      title: 'See what is released, as the operator:',
      command: operatorCommand(shown, ['status']),
    },
    {
      title: 'Edit schema.ts, and see what the change would allow before you release it:',
      command: operatorCommand(shown, ['release', '--against', 'production', '--dry-run']),
    },
    {
      title: CONSOLE_TITLE,
      command: operatorCommand(shown, ['console']),
    },
    {
      title: AGENTS_TITLE,
      command: operatorCommand(shown, ['mcp']),
    },
    {
      title: 'Check the machine, the databases and the files, and see what to repair:',
      command: operatorCommand(shown, ['doctor']),
    },
    {
      title: 'List the backups that the server makes by itself:',
      command: operatorCommand(shown, ['backup', 'list']),
    },
    {
      title: 'Prove that they are whole, by a restore into a temporary folder:',
      command: verifyCommand(shown),
    },
    ...(shown.isLive ? [watchCommand(shown)] : []),
  ]
}

function environmentOf({ clientEnvironment }: Shown): string[] {
  return Object.entries(clientEnvironment).map(([name, value]) => `${name}=${shellQuoted(value)}`)
}

function operatorCommand(shown: Shown, words: readonly string[]): string {
  const command = [shellQuoted(shown.client), ...words, '--root', shellQuoted(shown.productRoot)]
  return [...environmentOf(shown), ...command].join(' ')
}

function verifyCommand(shown: Shown): string {
  const { client, backups, backupKey } = shown
  const words = [
    'backup',
    'verify',
    shellQuoted(backups),
    '--identity',
    shellQuoted(backupKey),
    '--restore',
  ]
  return [...environmentOf(shown), shellQuoted(client), ...words].join(' ')
}

function watchCommand(shown: Shown) {
  const { client, channelId, productRoot, application, publicKey } = shown
  // A plain address on this machine needs the permission on every port but those of the defaults.
  const loopback = 'SVC_ALLOW_LOOPBACK_HTTP=true'
  const others = environmentOf(shown).filter((each) => each !== loopback)
  const watch = [shellQuoted(client), 'watch', 'messages.list', `'{"channel":"${channelId}"}'`]
  const where = ['--root', shellQuoted(productRoot), '--url', application]
  const call = ['--key-env', 'KEY', '--target', TARGET]
  return {
    title: 'Watch the channel in a second terminal while you write (Ctrl-C ends it):',
    command: [...others, loopback, `KEY=${publicKey}`, ...watch, ...where, ...call].join(' '),
  }
}

/** Returns the text of the file with all commands. */
export function commandsText(shown: Shown): string {
  return commands(shown)
    .map(({ title, command }) => `# ${title}\n\n${command}\n`)
    .join('\n')
}

export function summary(shown: Shown): string {
  const rows = [
    ['Application API', shown.application],
    ['Management API', shown.management],
    ['Public key', shown.publicKey],
    ['Secret key', `in ${shown.secretKeyFile}`],
    ['Functions', `${shown.workspace} (edit, then npm start again, or svc release)`],
    ['Server log', shown.log],
    ['More commands', `in ${shown.commands}`],
  ]
  const lines = rows.map(([name = '', value = '']) => `  ${name.padEnd(17)}${value}`)
  const page = shown.page === null ? '' : `\nOpen the chat in two windows:\n\n  ${shown.page}\n`
  const parts = [
    page,
    `${CONSOLE_TITLE}\n\n${operatorCommand(shown, ['console'])}\n`,
    `${AGENTS_TITLE}\n\n${operatorCommand(shown, ['mcp'])}\n`,
    lines.join('\n'),
  ]
  return `${parts.join('\n')}\n\nCtrl-C stops everything; the data stays.\n`
}
