/** Shows the events of `svc dev` on a terminal. */

import { changeLines } from '../../development/changes.ts'
import type { DevelopmentEvent } from '../../development/events.ts'
import type { Output } from '../../output.ts'
import { timeText } from '../../timestamps.ts'
import { printable } from '../../visible-text.ts'

const INDENT = ' '.repeat(10)
const SLOW_MILLIS = 100

const NETWORK_LINES = [
  '  Every device of this network reaches that address, so the key keeps others out: each call',
  '  needs it, and it calls every public Function. `svc call` and the like stay on this machine.',
  '',
]

/** The state that a rejected save leaves as it was. */
const LAST_CODE = 'The last valid code goes on serving.'

/**
 * Returns lines; `atMillis` is the Unix time of the event, shown in the zone of this machine.
 * `remains` says what a rejected save leaves as it was.
 */
export function eventLines(
  output: Output,
  event: DevelopmentEvent,
  atMillis: number,
  remains = LAST_CODE,
): string[] {
  const time = output.styled('dim', new Date(atMillis).toTimeString().slice(0, 8))
  switch (event.event) {
    case 'ready':
      return readyLines(output, event)
    case 'served': {
      const { functions, tables, durationMillis, changes, warnings } = event
      const what = `${functions} Functions, ${tables} tables in ${durationMillis} ms`
      return [
        `${time}  ${output.bold('served')}  ${what}`,
        ...changeLines(changes).map((line) => `${INDENT}${printable(line)}`),
        ...warnings.flatMap((text) => indented(`warning: ${text}`)),
      ]
    }
    case 'attached':
      return attachedLines(output, event)
    case 'synchronized':
      return synchronizedLines(output, event, time)
    case 'rejected':
      return [
        `${time}  ${output.styled('red', event.code)}: ${printable(event.message)}`,
        ...event.details.flatMap(indented),
        ...event.next.flatMap(indented),
        ...indented(remains),
      ]
    case 'copied':
      return copiedLines(output, event, time)
    case 'migrated': {
      const { name, state, processed, changed } = event
      const shown = state === 'complete' ? state : output.styled('red', state)
      const counts = `${processed} documents, ${changed} changed`
      return [`${time}  ${output.bold('migrated')}  ${printable(name)}  ${shown}  ${counts}`]
    }
    case 'types':
      return event.details.length === 0
        ? [`${time}  ${output.bold('types')}  No problems are left.`]
        : [
            `${time}  ${output.styled('red', 'types')}  ${problemCount(event.details.length)}`,
            ...event.details.flatMap(indented),
            ...indented('The code is served all the same; `svc build` rejects it.'),
          ]
    case 'configuration':
      return configurationLines(output, event, time)
    case 'call':
      return [`${time}  ${callText(output, event)}`]
    case 'due': {
      const { count, dueAtMicros } = event
      const pieces = count === 1 ? '' : `${count} pieces, the first `
      const when = `${pieces}at ${timeOf(dueAtMicros, atMillis)}`
      return [`${time}  ${output.styled('dim', 'due')}  ${printable(event.function)}  ${when}`]
    }
    case 'crons':
      return cronLines(output, event, { time, atMillis })
    case 'hooks':
      return hookLines(output, event, time)
    case 'ran':
      return [`${time}  ran  ${endText(output, event)}${afterText(event, atMillis)}`]
    case 'log': {
      const data = event.data === null ? '' : ` ${JSON.stringify(event.data)}`
      const [first = '', ...rest] = `${event.message}${data}`.split('\n')
      const level = event.level === 'error' ? output.styled('red', event.level) : event.level
      const head = `${time}  ${level}  ${printable(event.function)}  ${printable(first)}`
      return [head, ...rest.flatMap(indented)]
    }
    case 'failed':
      return [
        `${time}  ${output.styled('red', 'failed')}  ${printable(event.function)}  ` +
          printable(event.message),
        ...event.trace.flatMap(indented),
        ...event.codeFrame.flatMap(indented),
      ]
    case 'notice':
      return [`${time}  ${output.styled('yellow', 'notice')}  ${printable(event.message)}`]
  }
}

function copiedLines(
  output: Output,
  { from, sequence, atMicros, tables, files, isRedacted }: CopiedEvent,
  time: string,
): string[] {
  const redacted = isRedacted ? 'redacted' : 'not redacted: real data of production is on this disk'
  const yellow = (text: string) => output.styled('yellow', text)
  const lines = tables.flatMap(({ table, documents, leftOut, rule, fieldsLeftOut }) => {
    const counts = `${printable(table)}: ${documents} documents`
    const why = printable(rule ?? 'the schema has no such table')
    const fields = `  ${yellow('fields left out')}, which the schema lacks: `
    return [
      leftOut === 0 ? counts : `${counts}, ${yellow(`${leftOut} left out`)}: ${why}`,
      ...(fieldsLeftOut.length === 0 ? [] : [fields + printable(fieldsLeftOut.join(', '))]),
    ]
  })
  const of = `sequence ${sequence} of ${timeText(atMicros)}`
  return [
    `${time}  ${output.bold('copied')}  ${printable(from)}, ${of}, ${redacted}`,
    ...lines.map((line) => `${INDENT}${line}`),
    `${INDENT}files: ${files}, whose bytes are read from the backup when they are needed`,
  ]
}

type CopiedEvent = Extract<DevelopmentEvent, { event: 'copied' }>

function hookLines(
  output: Output,
  { hooks }: Extract<DevelopmentEvent, { event: 'hooks' }>,
  time: string,
): string[] {
  const head = `${time}  ${output.bold('hooks')}`
  if (hooks.length === 0) return [`${head}  http.ts has none.`]
  const lines = hooks.map(({ name, methods, url, function: callee, verify }) => {
    const checked = verify === null ? output.styled('yellow', 'not verified') : printable(verify)
    const handled = `${printable(name)}, ${checked}, ${printable(callee)}`
    return `${methods.join(' ')} ${printable(url)}  ${handled}`
  })
  return [head, ...lines.map((line) => `${INDENT}${line}`)]
}

function attachedLines(
  output: Output,
  event: Extract<DevelopmentEvent, { event: 'attached' }>,
): string[] {
  const { url, workspace, revisionId, environmentId } = event
  const from = revisionId === null ? 'It is new there.' : `Its HEAD is ${revisionId}.`
  return [
    `Workspace ${output.bold(printable(workspace))} in ${environmentId} at ${url}.`,
    `${from} Save a file to synchronize it. Ctrl-C ends.`,
  ]
}

function synchronizedLines(
  output: Output,
  event: Extract<DevelopmentEvent, { event: 'synchronized' }>,
  time: string,
): string[] {
  const { revisionId, releaseId, state, bytes, durationMillis, workspace, warnings } = event
  const targets = `release:${releaseId} and workspace:${workspace}`
  const next =
    state === 'validated'
      ? `Frozen: ${targets} answer it.`
      : `Not frozen: \`svc freeze ${workspace}\` makes ${targets} answer it.`
  const what = `${revisionId}, ${bytes} bytes in ${durationMillis} ms`
  return [
    `${time}  ${output.bold('synchronized')}  ${what}`,
    ...indented(next),
    ...warnings.flatMap((text) => indented(`warning: ${text}`)),
  ]
}

function configurationLines(
  output: Output,
  { set, removed, warnings }: Extract<DevelopmentEvent, { event: 'configuration' }>,
  time: string,
): string[] {
  const parts = [
    ...set.map(({ name, kind }) => `${name} (${kind})`),
    ...removed.map((name) => `${name} (removed)`),
  ]
  const complete = warnings.length === 0 ? 'No problems are left.' : problemCount(warnings.length)
  const what = parts.length === 0 ? complete : printable(parts.join(', '))
  const name = 'configuration'
  const head = warnings.length === 0 ? output.bold(name) : output.styled('yellow', name)
  return [`${time}  ${head}  ${what}`, ...warnings.flatMap((text) => indented(`warning: ${text}`))]
}

function problemCount(count: number): string {
  return count === 1 ? '1 problem' : `${count} problems`
}

function readyLines(
  output: Output,
  event: Extract<DevelopmentEvent, { event: 'ready' }>,
): string[] {
  const rows: [string, string][] = [
    ['Application', event.url],
    ...event.networkUrls.map((url): [string, string] => ['Network', url]),
    ['Key', event.applicationKey],
    ['Targets', event.targets.join(', ')],
    ['Workspace', event.workspace],
  ]
  if (event.developmentKeyFile !== null) rows.push(['Dev key', event.developmentKeyFile])
  if (event.curl !== null) rows.push(['Curl', event.curl])
  if (event.try !== null) rows.push(['Try', event.try])
  rows.push(
    ['Console', event.console],
    ['Agents', `${event.agents}  (for an editor: svc docs agents)`],
  )
  return [
    '',
    ...rows.map(([name, value]) => `  ${output.bold(name.padEnd(13))}${printable(value)}`),
    '',
    ...(event.networkUrls.length === 0 ? [] : NETWORK_LINES),
    '  Save a file, and the next call runs it. Ctrl-C ends.',
    '',
  ]
}

function callText(output: Output, event: Extract<DevelopmentEvent, { event: 'call' }>): string {
  const { kind, detail } = event
  const why = detail === null ? '' : `  ${printable(detail.split('\n')[0]!)}`
  return `${kind}  ${endText(output, event)}${why}`
}

type Ended = Extract<DevelopmentEvent, { event: 'call' | 'ran' }>

/** The Function, the outcome and the duration of a run. */
function endText(output: Output, { function: name, outcome, durationMillis }: Ended): string {
  const millis = `${durationMillis.toFixed(durationMillis < 10 ? 1 : 0)} ms`
  const shown = durationMillis > SLOW_MILLIS ? output.styled('yellow', millis) : millis
  const ended = outcome === 'ok' ? outcome : output.styled('red', outcome)
  return `${printable(name)}  ${ended}  ${shown}`
}

function afterText(event: Extract<DevelopmentEvent, { event: 'ran' }>, atMillis: number): string {
  const { cron, isRepeated, nextRunAtMicros } = event
  if (isRepeated) return '  and is attempted again'
  if (cron === null) return ''
  const next = nextRunAtMicros === null ? '' : `, next at ${timeOf(nextRunAtMicros, atMillis)}`
  return `  Cron ${printable(cron)}${next}`
}

function cronLines(
  output: Output,
  { crons }: Extract<DevelopmentEvent, { event: 'crons' }>,
  { time, atMillis }: { readonly time: string; readonly atMillis: number },
): string[] {
  const head = `${time}  ${output.bold('crons')}`
  if (crons.length === 0) return [`${head}  None are in force.`]
  const rows = crons.map(({ name, times, function: callee, nextRunAtMicros: next }) => {
    const nextText = next === null ? 'never' : timeOf(next, atMillis)
    return [name, callee, times, `next at ${nextText}`].map(printable).join('  ')
  })
  return [`${head}  ${crons.length} in force`, ...rows.flatMap(indented)]
}

/** Returns the time of day in the zone of this machine, with the date on another day. */
function timeOf(micros: string, nowMillis: number): string {
  const [at, now] = [Number(BigInt(micros) / 1_000n), nowMillis].map((millis) =>
    new Date(millis).toLocaleString('sv-SE'),
  ) as [string, string]
  return at.slice(0, 10) === now.slice(0, 10) ? at.slice(11) : at
}

function indented(text: string): string[] {
  return text.split('\n').map((line) => `${INDENT}${printable(line)}`)
}
