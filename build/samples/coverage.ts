/** Decides for each sample how it is covered; the rest is what `samples.test.ts` fails for. */
import { YAML } from 'bun'
import { applicationSamples } from './applications.ts'
import type { Sample } from './blocks.ts'
import { PARSED } from './parsed.ts'
import { type Coverage, EXEMPT, TESTED } from './registry.ts'
import { CLI_RUNS } from './runs/cli.ts'
import { DEVELOPMENT_RUNS } from './runs/development.ts'
import { LONG_RUNS, SERVER_RUNS } from './runs/server.ts'
import type { DocumentRun } from './runs/types.ts'
import { checkShell, unknownSettings } from './shell.ts'
import { EXECUTED } from './shell-runs.ts'
import { SAMPLE_WORKSPACES } from './workspaces.ts'

export interface Judgement {
  readonly place: string
  /** The ways in which the sample is covered; empty for one that is not. */
  readonly covered: readonly string[]
  /** Mistakes that the checks of its language found. */
  readonly mistakes: readonly string[]
}

/** The documents whose commands the executables run, by the name that their test imports. */
export const RUNS: Readonly<Record<string, readonly DocumentRun[]>> = {
  SERVER_RUNS,
  CLI_RUNS,
  DEVELOPMENT_RUNS,
  LONG_RUNS,
}

/** The places of their samples, with the test that runs each. */
export const RUN_PLACES: ReadonlyMap<string, string> = new Map(
  Object.values(RUNS)
    .flat()
    .flatMap(({ document, test, blocks }) =>
      blocks.map(({ block }) => [`${document}#${block}`, test] as const),
    ),
)

const PARSED_COMMANDS = 'its commands are parsed'
const NOTHING: Checked = { whole: null, mistakes: [] }
const COMMAND_LINE = /^(?:svc|svc-server|npm|cd) /
const ASSIGNMENT = /^[A-Z][A-Z0-9_]*=\S*$/

function covers({ of, language }: Coverage, sample: Sample): boolean {
  const isHere = of === sample.place || of === sample.document
  return isHere && (language === undefined || language === sample.language)
}

/** Returns the entries of the registry that cover no sample, such as those of a removed one. */
export function staleEntries(samples: readonly Sample[]): string[] {
  const entries: readonly Coverage[] = [...TESTED, ...EXEMPT, ...PARSED]
  const unused = entries.filter((entry) => !samples.some((sample) => covers(entry, sample)))
  return unused.map(({ of, language }) => (language === undefined ? of : `${of} ${language}`))
}

/** The places of the samples whose types are checked. */
export function compiledPlaces(samples: readonly Sample[]): Set<string> {
  const texts = new Map(samples.map(({ place, text }) => [place, text]))
  const places = new Set<string>()
  const at = (place: string): string => {
    places.add(place)
    return texts.get(place) ?? ''
  }
  for (const { files } of SAMPLE_WORKSPACES) files(at)
  applicationSamples(at)
  return places
}

/** Judges a sample. `compiled` has the places of the samples whose types are checked. */
export function judge(sample: Sample, compiled: ReadonlySet<string>): Judgement {
  const { place } = sample
  const covered: string[] = []
  if (compiled.has(place)) covered.push('its types are checked')
  if (EXECUTED.includes(place)) covered.push('build/samples/shell-runs.test.ts runs it')
  const run = RUN_PLACES.get(place)
  if (run !== undefined) covered.push(`${run} runs it`)
  covered.push(...TESTED.filter((entry) => covers(entry, sample)).map(({ test }) => test))
  const exempt = EXEMPT.filter((entry) => covers(entry, sample))
  covered.push(...exempt.map(({ reason }) => `exempt: ${reason}`))
  const { whole, mistakes } = checkOf(sample)
  // Commands that exist may still fail: a test runs them, or the list says why none does.
  const parsed = PARSED.find(({ of }) => of === place)
  if (parsed !== undefined) covered.push(`exempt: ${parsed.reason}`)
  if (whole !== null && whole !== PARSED_COMMANDS) covered.push(whole)
  return { place, covered, mistakes }
}

interface Checked {
  /** The result of the checks, where they check the whole sample; null otherwise. */
  readonly whole: string | null
  readonly mistakes: readonly string[]
}

function checkOf({ language, text }: Sample): Checked {
  switch (language) {
    case 'sh':
      return shell(text)
    case 'json':
      return parsed('JSON', () => JSON.parse(text), text)
    case 'yaml':
      return parsed('YAML', () => YAML.parse(text), text)
    case 'ini':
      return ini(text)
    case 'plain':
      return plain(text) ?? settings(text) ?? NOTHING
    case 'text':
      return settings(text) ?? NOTHING
    default:
      return NOTHING
  }
}

function shell(text: string): Checked {
  const { mistakes, unchecked } = checkShell(text)
  return { whole: unchecked.length === 0 ? PARSED_COMMANDS : null, mistakes }
}

function parsed(name: string, parse: () => unknown, text: string): Checked {
  try {
    parse()
    return { whole: `it is ${name}`, mistakes: unknownSettings(text) }
  } catch (error) {
    return { whole: `it is ${name}`, mistakes: [`no ${name}: ${String(error)}`] }
  }
}

/** Sections, assignments, nested assignments and comments. */
function ini(text: string): Checked {
  const wrong = text.split('\n').filter((line) => !/^(?:\[\S+\]|\s*\w+ =.*|#.*|)$/.test(line))
  return { whole: 'it is INI', mistakes: wrong.map((line) => `no INI: ${line}`) }
}

/** Checks text that is nothing but commands; returns null for other text. */
function plain(text: string): Checked | null {
  return linesOf(text).every((line) => COMMAND_LINE.test(line)) ? shell(text) : null
}

/** Checks text that is nothing but assignments of settings; returns null for other text. */
function settings(text: string): Checked | null {
  if (!linesOf(text).every((line) => ASSIGNMENT.test(line))) return null
  return { whole: 'its settings exist', mistakes: unknownSettings(text) }
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '')
}
