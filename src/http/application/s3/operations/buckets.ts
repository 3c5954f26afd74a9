/** Responses about settings of buckets, which operators manage, in the form that clients expect. */
import { S3Fault } from '../errors.ts'
import { element, XmlNode, xmlResponse } from '../xml/writer.ts'
import { ownerElement } from './listing.ts'

const INSTANCE = 'http://www.w3.org/2001/XMLSchema-instance'

/** The response to GetBucketLocation. Any region is accepted; an empty one means `us-east-1`. */
export function bucketLocation(): Response {
  return xmlResponse(element('LocationConstraint', '', true))
}

/** The response for a bucket that never had versions. */
export function bucketVersioning(): Response {
  return xmlResponse(element('VersioningConfiguration', '', true))
}

export function requestPayment(): Response {
  const payer = element('Payer', 'BucketOwner')
  return xmlResponse(element('RequestPaymentConfiguration', [payer], true))
}

/** The access list, which names the one owner only: access depends on storage keys alone. */
export function accessControl(): Response {
  const { text } = ownerElement('Grantee')
  const type = `<Grantee xmlns:xsi="${INSTANCE}" xsi:type="CanonicalUser">`
  const grantee = new XmlNode(text.replace('<Grantee>', type))
  const grant = element('Grant', [grantee, element('Permission', 'FULL_CONTROL')])
  const fields = [ownerElement('Owner'), element('AccessControlList', [grant])]
  return xmlResponse(element('AccessControlPolicy', fields, true))
}

/** The response for an object without tags. */
export function objectTagging(): Response {
  return xmlResponse(element('Tagging', [element('TagSet', '')], true))
}

/** Rejects CreateBucket. Clients that create a bucket before use accept that it exists. */
export function createBucket(): Response {
  throw new S3Fault('BucketAlreadyOwnedByYou')
}

export function headBucket(): Response {
  return new Response(null, { headers: { 'x-amz-bucket-region': 'us-east-1' } })
}
