//! The protocol's lines: what comes in, what goes out, and when the client is gone (design §21).
//!
//! Owns the bounds of a line and the end of the connection. Must not know what a message asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Bytes of one message: the longest task has room in it, however it is escaped. What is longer is left out.
const MESSAGE_MAX: usize = 1 << 20;

/// Where both ends of a connection are told of each other.
pub struct Ends {
    /// Set by whoever wants to hear no more of the client.
    pub enough: watch::Sender<bool>,
    /// Set when nothing more will come from the client.
    pub gone: watch::Sender<bool>,
    /// Whether the client has introduced itself.
    pub greeted: Arc<AtomicBool>,
}

impl Ends {
    /// Of a connection that begins.
    pub fn new() -> Self {
        Self {
            enough: watch::Sender::new(false),
            gone: watch::Sender::new(false),
            greeted: Arc::default(),
        }
    }
}

/// A connection in lines of JSON.
pub struct Line<R: AsyncRead, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, R, W>,
    enough: watch::Receiver<bool>,
    gone: watch::Sender<bool>,
    greeted: Arc<AtomicBool>,
}

impl<R, W> Line<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Over these two streams.
    pub fn new(read: R, write: W, ends: &Ends) -> Self {
        Self {
            inner: AsyncRwTransport::new_server(read, write).with_max_line_length(MESSAGE_MAX),
            enough: ends.enough.subscribe(),
            gone: ends.gone.clone(),
            greeted: Arc::clone(&ends.greeted),
        }
    }
}

impl<R, W> Transport<RoleServer> for Line<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = tokio::select! {
                message = self.inner.receive() => message,
                _ = self.enough.wait_for(|enough| *enough) => None,
            };
            let Some(message) = message else {
                self.gone.send_replace(true);
                return None;
            };
            // The SDK ends a connection that begins with anything but a request.
            let is_request = matches!(message, JsonRpcMessage::Request(_));
            if is_request || self.greeted.load(Ordering::Relaxed) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.gone.send_replace(true);
        self.inner.close().await
    }
}
