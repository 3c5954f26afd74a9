/** The reference of errors, from the one table of codes and the table of kinds. */
import { CODES, type CodeRow } from '../../src/errors/codes.ts'
import { KINDS, type KindRow } from '../../src/errors/kinds.ts'
import { code, table } from './markdown.ts'

interface Section {
  readonly title: string
  /** Matches the codes of the section; the last section has the remaining codes. */
  readonly has: RegExp
}

const SECTIONS: readonly Section[] = [
  { title: 'Start of the server', has: /^SERVER_/ },
  { title: 'Management address', has: /^(?:PLATFORM|PRODUCT)_/ },
  { title: 'Command line and builder', has: /^(?:CLIENT|WORKSPACE)_/ },
  { title: 'Application address', has: /^/ },
]

export function errorsDocument(): string {
  const codes = Object.entries(CODES) as readonly (readonly [string, CodeRow])[]
  const bySection = Map.groupBy(codes, ([name]) => SECTIONS.find(({ has }) => has.test(name))!)
  const parts = SECTIONS.map((section) => {
    const rows = (bySection.get(section) ?? []).map(([name, row]) => rowOf(name, row))
    return `## ${section.title}\n\n${table(COLUMNS, rows)}`
  })
  return [HEAD, ...parts, DECLARED].join('\n')
}

const COLUMNS = ['Code', 'HTTP', 'Exit', 'Retry', 'What happened', 'What to do']

/** Kinds of errors that no HTTP response has. */
const LOCAL = ['startup', 'setting', 'usage']

function rowOf(name: string, row: CodeRow): string[] {
  const kind: KindRow = KINDS[row.kind]
  const isLocal = LOCAL.includes(row.kind) || /^(?:CLIENT|WORKSPACE)_/.test(name)
  const retryable = row.retryable ?? kind.retryable
  return [
    code(name),
    isLocal ? '' : String(kind.status),
    String(kind.exit),
    retryable ? 'yes' : '',
    row.message,
    row.next,
  ]
}

const HEAD = `# Error codes: HTTP status, exit code, and what to do

Branch on \`code\`, never on the message. *HTTP* is the status of the response, *Exit* the exit code
of \`svc\` or \`svc-server\`. *Retry* says whether the same request, byte for byte, may be sent
again; a response can say otherwise in its own \`retryable\`. A response carries a request ID: the
entry of the server log with that ID has the cause, which no response contains.
`

const DECLARED = `## Errors that a Function declares

An application gets them as \`APP_\` and the declared name, with the status of the declared kind:

${table(
  ['Kind', 'HTTP', 'Exit'],
  (['invalid', 'forbidden', 'not_found', 'conflict'] as const).map((kind) => [
    code(kind),
    String(KINDS[kind].status),
    String(KINDS[kind].exit),
  ]),
)}`
