/** Steps of the walk over all operations: a file is uploaded and downloaded with grants. */
import type { State } from './arbitrary-requests.ts'
import type { Step, Walk } from './data-steps.ts'
import type { Origins } from './origins.ts'

/** Conditions that name another file, so that all of this one is sent. */
const OTHER = `"${'0'.repeat(64)}"`
const CONDITIONS = { 'if-none-match': OTHER, 'if-range': OTHER, range: 'bytes=0-0' }

export function fileSteps({ from }: Pick<Walk, 'from'>, origins: () => Origins): readonly Step[] {
  const upload = async (): Promise<State> => ({
    params: { uploadId: await origins().grantUpload() },
    headers: { 'content-type': 'text/plain' },
    body: new Uint8Array([1]),
  })
  const file = () => from('uploadFile', 'file', 'fileId')
  const download = (): State => {
    origins().grantDownload(file())
    return { params: { fileId: file() }, headers: CONDITIONS }
  }
  const signed = (): State => {
    return { params: { signedDownload: origins().signDownload(file()) }, headers: CONDITIONS }
  }
  return [
    ['uploadFile', 201, upload],
    ['downloadFile', 200, download],
    ['readFileHeaders', 200, download],
    ['downloadSignedFile', 200, signed],
    ['readSignedFileHeaders', 200, signed],
  ]
}
