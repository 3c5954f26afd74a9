/** How a terminal shows what `svc dev` reports. */
import type { DevelopmentEvent } from '../../development/events.ts'
import type { Output } from '../../output.ts'
import { printable } from '../../visible-text.ts'
import { changeLines } from '../releases/changes.ts'

const INDENT = ' '.repeat(10)
const SLOW_MILLIS = 100

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
    case 'types':
      return event.details.length === 0
        ? [`${time}  ${output.bold('types')}  No problems are left.`]
        : [
            `${time}  ${output.styled('red', 'types')}  ${problemCount(event.details.length)}`,
            ...event.details.flatMap(indented),
            ...indented('The code is served all the same; `svc build` rejects it.'),
          ]
    case 'call':
      return [`${time}  ${callText(output, event)}`]
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

function problemCount(count: number): string {
  return count === 1 ? '1 problem' : `${count} problems`
}

function readyLines(
  output: Output,
  event: Extract<DevelopmentEvent, { event: 'ready' }>,
): string[] {
  const rows: [string, string][] = [
    ['Application', event.url],
    ['Key', event.applicationKey],
    ['Targets', event.targets.join(', ')],
    ['Workspace', event.workspace],
  ]
  if (event.developmentKeyFile !== null) rows.push(['Dev key', event.developmentKeyFile])
  if (event.try !== null) rows.push(['Try', event.try])
  return [
    '',
    ...rows.map(([name, value]) => `  ${output.bold(name.padEnd(13))}${printable(value)}`),
    '',
    '  Save a file, and the next call runs it. Ctrl-C ends.',
    '',
  ]
}

function callText(output: Output, event: Extract<DevelopmentEvent, { event: 'call' }>): string {
  const { kind, outcome, detail, durationMillis } = event
  const millis = `${durationMillis.toFixed(durationMillis < 10 ? 1 : 0)} ms`
  const shown = durationMillis > SLOW_MILLIS ? output.styled('yellow', millis) : millis
  const ended = outcome === 'ok' ? outcome : output.styled('red', outcome)
  const why = detail === null ? '' : `  ${printable(detail.split('\n')[0]!)}`
  return `${kind}  ${printable(event.function)}  ${ended}  ${shown}${why}`
}

function indented(text: string): string[] {
  return text.split('\n').map((line) => `${INDENT}${printable(line)}`)
}
