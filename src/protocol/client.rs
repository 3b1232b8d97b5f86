//! A client of the protocol, over anything that reads and writes: requests go out with ids, and replies come back by them.

use std::io::{ErrorKind, Read, Write};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fault::{ErrorBody, ErrorReply};
use super::line::request_line;
use super::notices::NoticeLine;
use super::request::{Body, Id};
use crate::error::{Code, Error};

/// Bytes that are read at once.
const PIECE: usize = 1 << 14;

/// A client of the protocol. A stream that has nothing in time says `TimedOut` or `WouldBlock`; the next call goes on.
#[derive(Debug)]
pub struct ProtocolClient<S> {
    stream: S,
    unread: Vec<u8>,
    next: u64,
    waiting: Vec<Value>,
    notices: Vec<NoticeLine>,
    /// Errors that answer no request.
    errors: Vec<ErrorBody>,
}

/// The fields by which a line is told from others.
#[derive(Deserialize)]
struct LineHead {
    #[serde(default, rename = "type")]
    name: String,
    #[serde(default)]
    id: Value,
}

impl<S: Read + Write> ProtocolClient<S> {
    /// Returns a client that has said nothing yet.
    pub fn new(stream: S) -> ProtocolClient<S> {
        let (waiting, notices, errors) = (Vec::new(), Vec::new(), Vec::new());
        ProtocolClient { stream, unread: Vec::new(), next: 0, waiting, notices, errors }
    }

    /// Returns the stream, so that its deadline can be set.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Sends a request; gives the id that its reply will carry.
    ///
    /// # Errors
    /// `shutting-down` when the other side is gone.
    pub fn send(&mut self, body: &Body) -> Result<u64, Error> {
        self.next += 1;
        self.write(&request_line(Some(&Id::Value(self.next.into())), body))?;
        Ok(self.next)
    }

    /// Sends an event, which is not answered.
    ///
    /// # Errors
    /// `shutting-down` when the other side is gone.
    pub fn tell(&mut self, body: &Body) -> Result<(), Error> {
        self.write(&request_line(None, body))
    }

    /// Returns the reply to a request; `None` when it has not come in time. Notices and other replies are kept.
    ///
    /// # Errors
    /// The error that the reply carries; `shutting-down` when the other side is gone; `bad-json` for what is no such reply.
    pub fn reply<T: DeserializeOwned>(&mut self, id: u64) -> Result<Option<T>, ErrorBody> {
        if let Some(at) = self.waiting.iter().position(|line| line["id"] == id) {
            return read(self.waiting.swap_remove(at)).map(Some);
        }
        while let Some(line) = self.line()? {
            let value: Value = serde_json::from_slice(&line).map_err(unreadable)?;
            let head = LineHead::deserialize(&value).map_err(unreadable)?;
            if head.id == id {
                return read(value).map(Some);
            }
            self.keep(&head, value);
        }
        Ok(None)
    }

    /// Returns the next line, with its end; `None` when it has not come in time.
    ///
    /// # Errors
    /// `shutting-down` when the other side is gone.
    pub fn line(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut looked = 0;
        loop {
            if let Some(end) = self.unread[looked..].iter().position(|byte| *byte == b'\n') {
                let rest = self.unread.split_off(looked + end + 1);
                return Ok(Some(std::mem::replace(&mut self.unread, rest)));
            }
            looked = self.unread.len();
            let mut buffer = [0u8; PIECE];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Error::new(Code::ShuttingDown, "piton's engine ended before it answered")),
                Ok(length) => self.unread.extend_from_slice(&buffer[..length]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(gone(&error)),
            }
        }
    }

    /// Waits for one line that answers no request, and keeps it; `false` when none has come in time.
    ///
    /// # Errors
    /// As [`ProtocolClient::reply`].
    pub fn wait(&mut self) -> Result<bool, Error> {
        let Some(line) = self.line()? else { return Ok(false) };
        let value: Value = serde_json::from_slice(&line).map_err(unreadable)?;
        let head = LineHead::deserialize(&value).map_err(unreadable)?;
        self.keep(&head, value);
        Ok(true)
    }

    /// Returns the notices that came since the last call.
    pub fn notices(&mut self) -> Vec<NoticeLine> {
        std::mem::take(&mut self.notices)
    }

    /// Returns the errors without an id that came since the last call.
    pub fn errors(&mut self) -> Vec<ErrorBody> {
        std::mem::take(&mut self.errors)
    }

    fn write(&mut self, line: &[u8]) -> Result<(), Error> {
        self.stream.write_all(line).and_then(|()| self.stream.flush()).map_err(|error| gone(&error))
    }

    fn keep(&mut self, head: &LineHead, line: Value) {
        if !head.id.is_null() {
            self.waiting.push(line);
        } else if head.name == "notice" {
            // One that cannot be read is of a later version, and to be ignored.
            self.notices.extend(serde_json::from_value(line));
        } else if let Err(error) = read::<Value>(line) {
            self.errors.push(error);
        }
    }
}

/// Returns the body of a reply, or the error that it is.
fn read<T: DeserializeOwned>(line: Value) -> Result<T, ErrorBody> {
    if line["ok"] == true {
        return T::deserialize(line).map_err(|error| unreadable(error).into());
    }
    match ErrorReply::deserialize(line) {
        Ok(reply) => Err(reply.error),
        Err(error) => Err(unreadable(error).into()),
    }
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::new(Code::BadJson, "piton could not parse its own answer").caused_by(error)
}

fn gone(error: &std::io::Error) -> Error {
    Error::new(Code::ShuttingDown, format!("piton's engine stopped answering: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{EmptyReply, NoticeBody, ReloadReply};

    /// Pieces to read; an empty one is a time without any. And everything that was written.
    struct Pieces(Vec<&'static [u8]>, Vec<u8>);

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.1.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.pop() {
                None => Ok(0),
                Some(b"") => Err(ErrorKind::TimedOut.into()),
                Some(piece) => {
                    buffer[..piece.len()].copy_from_slice(piece);
                    Ok(piece.len())
                }
            }
        }
    }

    #[test]
    fn replies_come_by_their_ids_and_notices_are_kept() {
        let mut pieces: Vec<&[u8]> = vec![
            b"{\"v\":1,\"type\":\"notice\",\"seq\":1,\"notice\":\"config.reloaded\",\"warnings\":[\"w\"]}\n{\"v\":1,\"type\":\"pi",
            b"",
            b"ng\",\"id\":2,\"ok\":true}\n{\"v\":1,\"type\":\"notice\",\"seq\":2,\"notice\":\"new\"}\n",
            b"{\"v\":1,\"type\":\"error\",\"ok\":false,\"error\":{\"code\":\"bad-json\",\"message\":\"m\",\"retry\":false}}\n",
            b"{\"v\":1,\"type\":\"error\",\"id\":1,\"ok\":false,\"error\":{\"code\":\"newer\",\"message\":\"n\",\"retry\":true}}\n",
            b"no json\n",
        ];
        pieces.reverse();
        let mut client = ProtocolClient::new(Pieces(pieces, Vec::new()));
        let (first, second) = (client.send(&Body::Status).unwrap(), client.send(&Body::Ping).unwrap());
        client.tell(&Body::Shutdown).unwrap();
        assert_eq!(client.reply::<EmptyReply>(first).unwrap(), None);
        let refused = client.reply::<EmptyReply>(first).unwrap_err();
        assert_eq!((refused.code.text(), refused.message, refused.retry), ("newer".into(), "n".into(), true));
        assert_eq!(client.reply::<EmptyReply>(second).unwrap(), Some(EmptyReply {}));
        let notices = client.notices();
        assert_eq!(notices[0].body, NoticeBody::ConfigReloaded(ReloadReply { warnings: vec!["w".into()] }));
        assert_eq!((notices.len(), &notices[1].body), (2, &NoticeBody::Unknown));
        assert!(client.errors()[0].is(Code::BadJson));
        assert!(client.reply::<EmptyReply>(7).unwrap_err().is(Code::BadJson));
        assert!(client.reply::<EmptyReply>(7).unwrap_err().is(Code::ShuttingDown));
        let sent = String::from_utf8(client.stream.1).unwrap();
        let expected = "{\"v\":1,\"type\":\"status\",\"id\":1}\n{\"v\":1,\"type\":\"ping\",\"id\":2}\n{\"v\":1,\"type\":\"shutdown\"}\n";
        assert_eq!(sent, expected);
    }
}
