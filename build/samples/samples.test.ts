/** Every sample of every document is run or checked by a test, or has a reason why it is not. */
import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from '../bundle.ts'
import { readSamples, type Sample, samplesOf } from './blocks.ts'
import { compiledPlaces, judge, RUN_PLACES, RUNS, staleEntries } from './coverage.ts'
import { PARSED } from './parsed.ts'
import { EXEMPT, TESTED } from './registry.ts'
import { checkShell } from './shell.ts'
import { EXECUTED } from './shell-runs.ts'

const SAMPLES = readSamples(ROOT)
const COMPILED = compiledPlaces(SAMPLES)
const judged = SAMPLES.map((sample) => judge(sample, COMPILED))

const judgeText = (markdown: string) => {
  const [sample] = samplesOf('src/docs/new.md', markdown)
  return judge(sample!, COMPILED)
}
const fenced = (language: string, text: string): string =>
  `# New\n\n\`\`\`${language}\n${text}\n\`\`\`\n`

test('a place names one sample', () => {
  const places = SAMPLES.map(({ place }) => place)
  expect(places.length).toBeGreaterThan(350)
  expect(places.filter((place, i) => places.indexOf(place) !== i)).toEqual([])
})

test('every sample is covered: classify a new one in build/samples/registry.ts', () => {
  const open = judged.filter(({ covered }) => covered.length === 0)
  expect(open.map(({ place }) => place)).toEqual([])
})

test('no sample has a mistake that the checks of its language find', () => {
  const wrong = judged.filter(({ mistakes }) => mistakes.length > 0)
  expect(wrong.map(({ place, mistakes }) => ({ place, mistakes }))).toEqual([])
})

test('the registry has no entry without a sample', () => {
  expect(staleEntries(SAMPLES)).toEqual([])
  const places = SAMPLES.map(({ place }) => place)
  expect(
    [...COMPILED, ...EXECUTED, ...RUN_PLACES.keys()].filter((place) => !places.includes(place)),
  ).toEqual([])
})

test('every exemption has a reason, and exempts no sample that is covered otherwise', () => {
  for (const { of, reason } of [...EXEMPT, ...PARSED])
    expect([of, reason]).toEqual([of, expect.stringMatching(/\.$/)])
  const twice = judged.filter(
    ({ covered }) => covered.length > 1 && covered.some((way) => way.startsWith('exempt: ')),
  )
  expect(twice).toEqual([])
})

test('a test that the registry names exists and reads the document', () => {
  for (const entry of TESTED) {
    const { of, test: file, reader = file, word = basename(of.split('#')[0]!) } = entry
    expect([file, existsSync(join(ROOT, file))]).toEqual([file, true])
    expect([of, readFileSync(join(ROOT, reader), 'utf8').includes(word)]).toEqual([of, true])
  }
})

test('a test that runs commands exists and reads their list', () => {
  for (const [name, runs] of Object.entries(RUNS)) {
    for (const { document, test: file } of runs) {
      const path = join(ROOT, file)
      const reads = existsSync(path) && readFileSync(path, 'utf8').includes(`...${name}`)
      expect([document, file, reads]).toEqual([document, file, true])
    }
  }
})

test('a command that is left out of a sample has a reason', () => {
  const descriptions = Object.values(RUNS)
    .flat()
    .flatMap(({ blocks }) => blocks.flatMap(({ commands = {} }) => Object.values(commands).flat()))
  const reasons = descriptions.flatMap(({ skip }) => skip ?? [])
  expect(reasons.length).toBeGreaterThan(0)
  for (const reason of reasons) expect(reason).toMatch(/\.$/)
})

test.each([
  ['sh', 'svc whoam', 'Unknown command whoam'],
  ['sh', 'svc-server serv', 'no such mode'],
  ['sh', 'until true; do', 'end of file'],
  ['sh', 'curl http://127.0.0.1:3210/v1/function/a.b', 'no such route'],
  ['sh', 'curl -d x', 'it has no address'],
  ['sh', 'docker compose run --rm svc-server chek', 'no such mode'],
  ['sh', 'docker compose exec svc-server svc-server docto', 'no such mode'],
  ['sh', 'systemctl restart svc', 'no such unit'],
  ['sh', 'export SERVICE_STATE_DIRECTORI=/x', 'SERVICE_STATE_DIRECTORI is no setting'],
  ['plain', 'npm run biuld', 'no such script'],
  ['plain', 'SERVICE_BACKUP_DIRECTORI=/x', 'is no setting'],
  ['json', '{ "a": 1, }', 'no JSON'],
  ['yaml', 'a: [1', 'no YAML'],
  ['ini', 'endpoint: x', 'no INI'],
])('a mistake in a sample in %s is found: %s', (language, text, mistake) => {
  const { mistakes } = judgeText(fenced(language === 'plain' ? '' : language, text))
  expect(mistakes.join('\n')).toContain(mistake)
})

test.each([
  ['a new command of svc', fenced('sh', 'svc whoami')],
  ['a new mode of the server', fenced('sh', 'export SERVICE_LOG_LEVEL=warn\nsvc-server check')],
  ['an indented command of svc', '# New\n\n    svc dev --root my-app\n'],
  ['a new TypeScript sample', fenced('ts', 'export const a = 1')],
  ['a shell sample with another program', fenced('sh', 'pg_dump --file=x')],
  ['a text', fenced('text', 'anything else')],
  ['an unknown language', fenced('toml', 'a = 1')],
  ['an indented sample', '# New\n\n    anything else\n'],
])('%s is not covered until it is classified', (_, markdown) => {
  expect(judgeText(markdown).covered).toEqual([])
})

test('samples are found in lists and below headings that repeat', () => {
  const markdown = '# A\n\n```sh\na\n```\n\n1. one\n\n   ```sh\n   b\n   ```\n\n## B\n\n    c\n'
  const found = samplesOf('a.md', markdown).map(({ place, language, text }: Sample) => [
    place,
    language,
    text,
  ])
  expect(found).toEqual([
    ['a.md#a 1', 'sh', 'a'],
    ['a.md#a 2', 'sh', 'b'],
    ['a.md#b 1', 'plain', 'c'],
  ])
})

test('programs whose arguments say something else are left to a test or an exemption', () => {
  const { mistakes, unchecked } = checkShell('cd x && svc whoami && tar -xzf a.tar.gz')
  expect([mistakes, unchecked]).toEqual([[], ['tar']])
})
