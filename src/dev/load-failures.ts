/** Code that built and then threw while it was loaded: what it threw, at the author's line. */
import { isFault } from '../errors/fault.ts'
import type { Bundle } from './bundles.ts'
import { fileProblem, type Problem, workspaceFault } from './problems.ts'
import { type Place, SourceMap, type SourceMapJson } from './source-maps.ts'
import { SCHEMA_FILE } from './workspace-files.ts'

const FRAME = /(?:^|[\s(@])([^\s()@]+):(\d+):(\d+)\)?\s*$/

/** A WORKSPACE_INVALID where the code is to blame; any other failure as it is. */
export function loadFailure(error: unknown, bundle: Bundle): unknown {
  if (isFault(error, 'DEADLINE_EXCEEDED', 'LIMIT_EXCEEDED')) {
    const message = 'Loading the Workspace took too long or needed too much memory.'
    const mend = 'Do less outside of handlers.'
    return workspaceFault([fileProblem('functions', message, mend)], error)
  }
  if (!isFault(error, 'FUNCTION_FAILED')) return error
  return workspaceFault([problemOf(error.detail ?? '', bundle)], error)
}

function problemOf(detail: string, bundle: Bundle): Problem {
  const lines = detail.split('\n')
  const json = JSON.parse(bundle.sourceMap) as SourceMapJson
  const map = new SourceMap(json)
  const places = lines.flatMap((line) => placeOf(line, json.sources, map)).filter(isWorkspaces)
  const place = places.find(({ file }) => !file.startsWith('node_modules/')) ?? places[0]
  const said = lines.filter((line) => line.trim() !== '' && !FRAME.test(line)).join('\n')
  const message = said.replace(/^DefinitionError: /, '') || 'The code failed while it was loaded.'
  return {
    file: place?.file ?? (message.includes(SCHEMA_FILE) ? SCHEMA_FILE : 'functions'),
    line: place?.line ?? null,
    column: place?.column ?? null,
    message,
    mend: null,
  }
}

/** The SDK and the generated entry are ours: what fails in them is about its caller. */
function isWorkspaces({ file }: Place): boolean {
  return file !== 'svc' && file !== 'svc:entry'
}

/** A frame may be mapped already, or be a place in the bundle. */
function placeOf(text: string, sources: readonly string[], map: SourceMap): Place[] {
  const match = FRAME.exec(text)
  if (match === null) return []
  const [file, line, column] = [match[1]!, Number(match[2]), Number(match[3])]
  if (sources.includes(file)) return [{ file, line, column }]
  const place = map.find(line, column)
  return place === null ? [] : [place]
}
