/** GET and HEAD /v1/files/downloads/{fileId}: the bytes of one file, or one range of them. */
import { Fault } from '../../../errors/fault.ts'
import { findGranted, type GrantedFile } from '../../../product/files/downloads.ts'
import { FILE_DOCUMENTS } from '../../../value/files/files.ts'
import { APPLICATION_CODES, errorResponse } from '../../errors.ts'
import { fileAnswer } from '../../file-answers.ts'
import { peerOf } from '../../rate-limits.ts'
import { namedBytesOf } from '../../transfers/named-bytes.ts'
import type { Gateway } from '../gateway.ts'
import type { Incoming } from '../incoming.ts'
import { requireId, withGrant } from './grants.ts'

export async function sendDownload(
  gateway: Gateway,
  incoming: Incoming,
  fileId: string,
): Promise<Response> {
  requireId(FILE_DOCUMENTS, fileId)
  const file = await withGrant(gateway, incoming, (token) =>
    findGranted(gateway.files, fileId, token),
  )
  return answerDownload(gateway, incoming, file)
}

/** Sends the file with additional headers, within the bounds on downloads. */
export async function answerDownload(
  gateway: Gateway,
  incoming: Incoming,
  file: GrantedFile,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const { request, binding } = incoming
  const answer = await fileAnswer(gateway.files, request, file, {
    fileName: file.fileName,
    namesBytes: binding.namesBytes,
    headers,
    send: (bytes, open) => {
      return gateway.transfers.downloads.send({ peer: peerOf(binding), bytes }, binding, open)
    },
  })
  if (!(answer instanceof Response)) return unsatisfiable(gateway, incoming, file.size)
  const named = namedBytesOf(answer.headers)
  if (named !== null) {
    gateway.counts.transferred('downloaded', named.slice.end - named.slice.start)
  } else if (answer.body !== null) {
    gateway.counts.transferred('downloaded', Number(answer.headers.get('content-length')))
  }
  return answer
}

/** Responds 416 with the length of the file, so that the client can correct its range. */
function unsatisfiable({ counts }: Gateway, { requestId }: Incoming, size: bigint): Response {
  const fault = new Fault('RANGE_INVALID')
  counts.failed(fault)
  const response = errorResponse(fault, requestId, APPLICATION_CODES)
  response.headers.set('content-range', `bytes */${size}`)
  return response
}
