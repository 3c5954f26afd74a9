/**
 * GET and HEAD /v1/files/signed-downloads/{signedDownload}: a file for `<img>`, `<video>` and
 * links, which send no header. The last segment of the path is the credential, so logs and traces
 * show neither it nor the path.
 */
import { findSigned, type SignedFile } from '../../../product/files/downloads.ts'
import { isInlineType } from '../../../value/files/inline-types.ts'
import { isSignedDownload } from '../../../wire/files/stored-files.ts'
import { disposition } from '../../file-answers.ts'
import type { Gateway } from '../gateway.ts'
import type { Incoming } from '../incoming.ts'
import { answerDownload } from './downloads.ts'
import { chargeFailures, malformedPath } from './grants.ts'

/**
 * A browser tab that shows the file loads only the file and executes nothing. Inline style is
 * allowed, since browsers use it in the page that they generate for an image or a video.
 */
const POLICY =
  "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"

export async function sendSignedDownload(
  gateway: Gateway,
  incoming: Incoming,
  token: string,
): Promise<Response> {
  if (!isSignedDownload(token)) throw malformedPath('the token of a signed download')
  const file = await chargeFailures(gateway, incoming, () => findSigned(gateway.files, token))
  return answerDownload(gateway, incoming, file, headersOf(file))
}

function headersOf({ contentType, fileName, inline }: SignedFile): Record<string, string> {
  // Users choose the types of their files, so only listed types are shown inline.
  const kind = inline && isInlineType(contentType) ? 'inline' : 'attachment'
  return {
    'content-disposition': disposition(kind, fileName),
    'content-security-policy': POLICY,
    // Browsers cache the bytes and revalidate each use, so a deleted file disappears.
    'cache-control': 'private, no-cache',
    // Pages are on another site than the application address and must be able to embed the file.
    'cross-origin-resource-policy': 'cross-origin',
    'referrer-policy': 'no-referrer',
  }
}
